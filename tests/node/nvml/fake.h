/*
 * What the parts of the fake library share: the described cards, and the state on disk.
 *
 * QUADRANT_FAKE_NVML names the description. What changes at run time is in files below
 * DESCRIPTION.state/, so that every process sees the same; see README.md for both.
 */
#ifndef FAKE_H
#define FAKE_H

#include <stddef.h>
#include <stdio.h>

#include "nvml.h"

enum { CARDS_MAX = 16, LINKS_MAX = 18, PROFILES_MAX = 18, PLACEMENTS_MAX = 8, NAME_MAX_ = 96 };

/* One kind of MIG instance a card can hold. */
typedef struct {
  unsigned index; /* in NVML's list of profiles */
  gpu_profile_t info;
  unsigned placements;
  placement_t placement[PLACEMENTS_MAX];
} profile_t;

typedef struct { int kind; char remote[32]; } link_t; /* kind: LINK_GPU, LINK_SWITCH */

/* One card as described, or (gpu_instance >= 0) a MIG device in it. A handle points to one. */
typedef struct card {
  int index;
  int gpu_instance, compute_instance; /* -1: the card itself */
  char name[NAME_MAX_], uuid[NAME_MAX_], pci[32];
  unsigned long long memory_mb;
  int brand, architecture, addressing, module, minor; /* -1: the card does not know */
  int major_version, minor_version;
  int links;
  link_t link[LINKS_MAX];
  int fabric_state; /* -1: no fabric */
  unsigned fabric_status;
  unsigned clique;
  uint8_t cluster[16];
  int mig; /* -1: not capable; else the mode it starts with */
  int profiles;
  profile_t profile[PROFILES_MAX];
  char errors[512]; /* "FUNCTION CODE" lines of the description */
} card_t;

typedef struct {
  char driver[32];
  int cuda;
  int cards;
  card_t card[CARDS_MAX];
} machine_t;

extern machine_t machine;

/* describe.c: reads the description; an NVML code. */
int describe(const char *path);
/* library.c: NVML_SUCCESS when `function` may go on with this card. */
int check(const card_t *card, const char *function);
#define CHECK(card)                            \
  do {                                         \
    int code_ = check((card), __func__);       \
    if (code_ != NVML_SUCCESS) return code_;   \
  } while (0)
int give_text(char *to, unsigned size, const char *text);

/* state.c: files below DESCRIPTION.state; `card` NULL means the machine. */
int state_lock(void); /* a descriptor to close, which unlocks */
FILE *state_open(const card_t *card, const char *name, const char *mode);
void state_path(const card_t *card, const char *name, char *path, size_t size);
int state_exists(const card_t *card, const char *name);
int state_numbers(const card_t *card, const char *name, long *numbers, int count);
void state_write(const card_t *card, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void state_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The code that a test has ordered for a function, or 0. */
int state_error(const card_t *card, const char *function);

/* mig.c: what the getters of a MIG device need. */
int mig_attributes(const card_t *device, attributes_t *attributes);
int mig_name(const card_t *device, char *text, size_t size);
int mig_uuid(const card_t *device, char *text, size_t size);
card_t *mig_by_uuid(const char *uuid);

#endif
