/* The MIG instances of a card, as they are in the file "instances" of its state. */
#ifndef INSTANCES_H
#define INSTANCES_H

#include "fake.h"

enum { INSTANCES_MAX = 32 };

typedef struct {
  int id, profile; /* profile: place in card->profile */
  placement_t placement;
} gpu_instance_t;

typedef struct {
  int gpu_instance, id;
  unsigned start, slices;
} compute_instance_t;

typedef struct {
  int gpus, computes;
  gpu_instance_t gpu[INSTANCES_MAX];
  compute_instance_t compute[INSTANCES_MAX];
} instances_t;

/* What a handle of a GPU instance, a compute instance or a MIG device points to: the card's data
 * with the two IDs. The same instance always has the same handle. */
card_t *handle(const card_t *card, int gpu_instance, int compute_instance);
card_t *parent(const card_t *handle);

void instances_read(const card_t *card, instances_t *instances);
void instances_write(const card_t *card, const instances_t *instances);
gpu_instance_t *gpu_of(instances_t *instances, int id);
compute_instance_t *compute_of(instances_t *instances, int gpu_instance, int id);
int mig_mode(const card_t *card, unsigned *current, unsigned *pending);

#endif
