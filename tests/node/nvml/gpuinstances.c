/* GPU instances of MIG: made in a placement, listed, destroyed. */
#include <string.h>
#include <unistd.h>

#include "instances.h"

typedef struct { card_t *device; unsigned id, profile; placement_t placement; } gpu_info_t;

static int overlap(placement_t a, placement_t b) {
  return a.start < b.start + b.size && b.start < a.start + a.size;
}

/* What all instances of a card use of engines that a placement does not tell. */
static int engines_left(const card_t *card, const instances_t *all, const profile_t *wanted) {
  gpu_profile_t used = {0}, most = {0};
  unsigned same = 0;
  for (int i = 0; i < all->gpus; i++) {
    const profile_t *other = &card->profile[all->gpu[i].profile];
    used.multiprocessors += other->info.multiprocessors;
    used.copy_engines += other->info.copy_engines;
    used.decoders += other->info.decoders;
    used.jpegs += other->info.jpegs;
    used.ofas += other->info.ofas;
    used.slices += other->info.slices;
    same += other == wanted;
  }
  for (int i = 0; i < card->profiles; i++)
    if (card->profile[i].info.slices > most.slices) most = card->profile[i].info;
  const gpu_profile_t *info = &wanted->info;
  return same < info->instances && used.slices + info->slices <= most.slices &&
         used.multiprocessors + info->multiprocessors <= most.multiprocessors &&
         used.copy_engines + info->copy_engines <= most.copy_engines &&
         used.decoders + info->decoders <= most.decoders &&
         used.jpegs + info->jpegs <= most.jpegs && used.ofas + info->ofas <= most.ofas;
}

static int is_free(const instances_t *all, placement_t placement) {
  for (int i = 0; i < all->gpus; i++)
    if (overlap(all->gpu[i].placement, placement)) return 0;
  return 1;
}

/* `wanted` NULL: the first placement that is free. */
static int place(const card_t *card, const instances_t *all, const profile_t *profile,
                 const placement_t *wanted, placement_t *chosen) {
  int possible = 0;
  for (unsigned i = 0; i < profile->placements; i++) {
    placement_t placement = profile->placement[i];
    if (wanted && (wanted->start != placement.start || wanted->size != placement.size)) continue;
    possible = 1;
    if (!is_free(all, placement)) continue;
    *chosen = placement;
    return engines_left(card, all, profile) ? NVML_SUCCESS : NVML_INSUFFICIENT_RESOURCES;
  }
  return possible ? NVML_INSUFFICIENT_RESOURCES : NVML_INVALID_ARGUMENT;
}

static int create(card_t *card, unsigned id, const placement_t *wanted, card_t **made) {
  unsigned current, pending;
  int kind = 0;
  if (mig_mode(card, &current, &pending) != NVML_SUCCESS || !current) return NVML_NOT_SUPPORTED;
  while (kind < card->profiles && card->profile[kind].info.id != id) kind++;
  if (kind == card->profiles) return NVML_INVALID_ARGUMENT;
  instances_t all;
  instances_read(card, &all);
  if (all.gpus == INSTANCES_MAX) return NVML_INSUFFICIENT_RESOURCES;
  gpu_instance_t *gpu = &all.gpu[all.gpus];
  int code = place(card, &all, &card->profile[kind], wanted, &gpu->placement);
  if (code != NVML_SUCCESS) return code;
  int number = 1;
  while (gpu_of(&all, number)) number++;
  gpu->id = number;
  gpu->profile = kind;
  all.gpus++;
  instances_write(card, &all);
  state_log("gpu-instance %d %d %s %u", card->index, gpu->id, card->profile[kind].info.name + 4,
            gpu->placement.start);
  *made = handle(card, gpu->id, -1);
  return NVML_SUCCESS;
}

int nvmlDeviceCreateGpuInstance(card_t *card, unsigned id, card_t **made) {
  CHECK(card);
  int lock = state_lock(), code = create(card, id, NULL, made);
  close(lock);
  return code;
}

int nvmlDeviceCreateGpuInstanceWithPlacement(card_t *card, unsigned id, const placement_t *wanted,
                                             card_t **made) {
  CHECK(card);
  int lock = state_lock(), code = create(card, id, wanted, made);
  close(lock);
  return code;
}

static int destroy(card_t *gpu) {
  instances_t all;
  instances_read(gpu, &all);
  gpu_instance_t *found = gpu_of(&all, gpu->gpu_instance);
  if (!found) return NVML_INVALID_ARGUMENT;
  for (int i = 0; i < all.computes; i++)
    if (all.compute[i].gpu_instance == found->id) return NVML_IN_USE;
  state_log("gpu-instance-destroyed %d %d", gpu->index, found->id);
  *found = all.gpu[--all.gpus];
  instances_write(gpu, &all);
  return NVML_SUCCESS;
}

int nvmlGpuInstanceDestroy(card_t *gpu) {
  CHECK(parent(gpu));
  int lock = state_lock(), code = destroy(gpu);
  close(lock);
  return code;
}

int nvmlDeviceGetGpuInstances(card_t *card, unsigned id, card_t **to, unsigned *count) {
  CHECK(card);
  unsigned current, pending;
  if (mig_mode(card, &current, &pending) != NVML_SUCCESS || !current) return NVML_NOT_SUPPORTED;
  instances_t all;
  instances_read(card, &all);
  *count = 0;
  for (int i = 0; i < all.gpus; i++)
    if (card->profile[all.gpu[i].profile].info.id == id)
      to[(*count)++] = handle(card, all.gpu[i].id, -1);
  return NVML_SUCCESS;
}

int nvmlDeviceGetGpuInstanceById(card_t *card, unsigned id, card_t **gpu) {
  CHECK(card);
  instances_t all;
  instances_read(card, &all);
  if (!gpu_of(&all, (int)id)) return NVML_NOT_FOUND;
  *gpu = handle(card, (int)id, -1);
  return NVML_SUCCESS;
}

int nvmlGpuInstanceGetInfo(card_t *gpu, gpu_info_t *info) {
  CHECK(parent(gpu));
  instances_t all;
  instances_read(gpu, &all);
  gpu_instance_t *found = gpu_of(&all, gpu->gpu_instance);
  if (!found) return NVML_INVALID_ARGUMENT;
  *info = (gpu_info_t){parent(gpu), (unsigned)found->id,
                       parent(gpu)->profile[found->profile].info.id, found->placement};
  return NVML_SUCCESS;
}

int nvmlDeviceGetGpuInstanceRemainingCapacity(card_t *card, unsigned id, unsigned *count) {
  CHECK(card);
  instances_t all;
  instances_read(card, &all);
  *count = 0;
  for (int kind = 0; kind < card->profiles; kind++) {
    const profile_t *profile = &card->profile[kind];
    if (profile->info.id != id) continue;
    placement_t chosen;
    while (all.gpus < INSTANCES_MAX &&
           place(card, &all, profile, NULL, &chosen) == NVML_SUCCESS) {
      all.gpu[all.gpus++] = (gpu_instance_t){.id = 0, .profile = kind, .placement = chosen};
      (*count)++;
    }
    return NVML_SUCCESS;
  }
  return NVML_INVALID_ARGUMENT;
}
