/* Instances on disk, and the handles that stand for them. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "instances.h"

typedef struct node { card_t card; struct node *next; } node_t;

static pthread_mutex_t naming = PTHREAD_MUTEX_INITIALIZER;
static node_t *handles;

card_t *parent(const card_t *handle) { return &machine.card[handle->index]; }

card_t *handle(const card_t *card, int gpu_instance, int compute_instance) {
  pthread_mutex_lock(&naming);
  node_t *node = handles;
  while (node && !(node->card.index == card->index && node->card.gpu_instance == gpu_instance &&
                   node->card.compute_instance == compute_instance))
    node = node->next;
  if (!node && (node = calloc(1, sizeof *node))) {
    node->card = *parent(card);
    node->card.gpu_instance = gpu_instance;
    node->card.compute_instance = compute_instance;
    node->next = handles;
    handles = node;
  }
  pthread_mutex_unlock(&naming);
  return node ? &node->card : NULL;
}

static void read_line(const char *line, instances_t *all) {
  gpu_instance_t *gpu = &all->gpu[all->gpus];
  compute_instance_t *compute = &all->compute[all->computes];
  if (all->gpus < INSTANCES_MAX && sscanf(line, "gpu %d %d %u %u", &gpu->id, &gpu->profile,
                                          &gpu->placement.start, &gpu->placement.size) == 4)
    all->gpus++;
  else if (all->computes < INSTANCES_MAX &&
           sscanf(line, "compute %d %d %u %u", &compute->gpu_instance, &compute->id,
                  &compute->start, &compute->slices) == 4)
    all->computes++;
}

void instances_read(const card_t *card, instances_t *instances) {
  memset(instances, 0, sizeof *instances);
  FILE *file = state_open(card, "instances", "re");
  if (!file) return;
  char line[128];
  while (fgets(line, sizeof line, file)) read_line(line, instances);
  fclose(file);
}

void instances_write(const card_t *card, const instances_t *all) {
  char text[INSTANCES_MAX * 2 * 64] = "";
  size_t used = 0;
  for (int i = 0; i < all->gpus; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "gpu %d %d %u %u\n", all->gpu[i].id,
                             all->gpu[i].profile, all->gpu[i].placement.start,
                             all->gpu[i].placement.size);
  for (int i = 0; i < all->computes; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "compute %d %d %u %u\n",
                             all->compute[i].gpu_instance, all->compute[i].id,
                             all->compute[i].start, all->compute[i].slices);
  state_write(card, "instances", "%s", text);
}

gpu_instance_t *gpu_of(instances_t *instances, int id) {
  for (int i = 0; i < instances->gpus; i++)
    if (instances->gpu[i].id == id) return &instances->gpu[i];
  return NULL;
}

compute_instance_t *compute_of(instances_t *instances, int gpu_instance, int id) {
  for (int i = 0; i < instances->computes; i++)
    if (instances->compute[i].gpu_instance == gpu_instance && instances->compute[i].id == id)
      return &instances->compute[i];
  return NULL;
}

int mig_mode(const card_t *card, unsigned *current, unsigned *pending) {
  if (card->mig < 0) return NVML_NOT_SUPPORTED;
  long numbers[2] = {card->mig, card->mig};
  state_numbers(card, "mig-mode", numbers, 2);
  *current = (unsigned)numbers[0];
  *pending = (unsigned)numbers[1];
  return NVML_SUCCESS;
}
