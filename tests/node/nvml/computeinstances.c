/* Compute instances of MIG: parts of a GPU instance's compute slices. */
#include <string.h>
#include <unistd.h>

#include "instances.h"

typedef struct {
  card_t *device, *gpu;
  unsigned id, profile;
  placement_t placement;
} compute_info_t;

/* Slices by the profile's number in NVML's list, which is also its ID here. */
static const unsigned SLICES[] = {1, 2, 3, 4, 7, 8, 6, 1};
enum { COMPUTE_PROFILES = 7 };

static const gpu_profile_t *inside(const card_t *gpu, instances_t *all) {
  instances_read(gpu, all);
  gpu_instance_t *found = gpu_of(all, gpu->gpu_instance);
  return found ? &parent(gpu)->profile[found->profile].info : NULL;
}

static void describe_profile(unsigned number, const gpu_profile_t *gpu, compute_profile_t *info) {
  unsigned slices = SLICES[number];
  const char *kind = gpu->name + strlen("MIG ");
  *info = (compute_profile_t){
      .version = 0x2000088,
      .id = number,
      .slices = slices,
      .instances = gpu->slices / slices,
      .multiprocessors = gpu->multiprocessors * slices / gpu->slices,
      .copy_engines = gpu->copy_engines,
      .decoders = gpu->decoders,
      .encoders = gpu->encoders,
      .jpegs = gpu->jpegs,
      .ofas = gpu->ofas,
  };
  if (slices == gpu->slices)
    snprintf(info->name, sizeof info->name, "MIG %.80s", kind);
  else
    snprintf(info->name, sizeof info->name, "MIG %uc.%.80s", slices, kind);
}

int nvmlGpuInstanceGetComputeInstanceProfileInfoV(card_t *gpu, unsigned number, unsigned engine,
                                                  compute_profile_t *info) {
  CHECK(parent(gpu));
  if (info->version != 0x2000088) return NVML_VERSION_MISMATCH;
  instances_t all;
  const gpu_profile_t *around = inside(gpu, &all);
  if (!around || number > COMPUTE_PROFILES || engine != 0) return NVML_INVALID_ARGUMENT;
  if (number == COMPUTE_PROFILES || SLICES[number] > around->slices) return NVML_NOT_SUPPORTED;
  describe_profile(number, around, info);
  return NVML_SUCCESS;
}

static int create(card_t *gpu, unsigned number, card_t **made) {
  instances_t all;
  const gpu_profile_t *around = inside(gpu, &all);
  if (!around || number >= COMPUTE_PROFILES || SLICES[number] > around->slices)
    return NVML_INVALID_ARGUMENT;
  unsigned used = 0;
  for (int i = 0; i < all.computes; i++)
    if (all.compute[i].gpu_instance == gpu->gpu_instance)
      used += all.compute[i].slices;
  if (used + SLICES[number] > around->slices || all.computes == INSTANCES_MAX)
    return NVML_INSUFFICIENT_RESOURCES;
  int id = 0;
  while (compute_of(&all, gpu->gpu_instance, id)) id++;
  all.compute[all.computes++] = (compute_instance_t){gpu->gpu_instance, id, used, SLICES[number]};
  instances_write(gpu, &all);
  state_log("compute-instance %d %d %d", gpu->index, gpu->gpu_instance, id);
  *made = handle(gpu, gpu->gpu_instance, id);
  return NVML_SUCCESS;
}

int nvmlGpuInstanceCreateComputeInstance(card_t *gpu, unsigned number, card_t **made) {
  CHECK(parent(gpu));
  int lock = state_lock(), code = create(gpu, number, made);
  close(lock);
  return code;
}

/* Programs run in every instance of a card that has the file "busy". */
static int destroy(card_t *compute) {
  instances_t all;
  instances_read(compute, &all);
  compute_instance_t *found =
      compute_of(&all, compute->gpu_instance, compute->compute_instance);
  if (!found) return NVML_INVALID_ARGUMENT;
  if (state_exists(compute, "busy")) return NVML_IN_USE;
  state_log("compute-instance-destroyed %d %d %d", compute->index, found->gpu_instance, found->id);
  *found = all.compute[--all.computes];
  instances_write(compute, &all);
  return NVML_SUCCESS;
}

int nvmlComputeInstanceDestroy(card_t *compute) {
  CHECK(parent(compute));
  int lock = state_lock(), code = destroy(compute);
  close(lock);
  return code;
}

int nvmlGpuInstanceGetComputeInstances(card_t *gpu, unsigned number, card_t **to,
                                       unsigned *count) {
  CHECK(parent(gpu));
  instances_t all;
  if (!inside(gpu, &all) || number >= COMPUTE_PROFILES) return NVML_INVALID_ARGUMENT;
  *count = 0;
  for (int i = 0; i < all.computes; i++)
    if (all.compute[i].gpu_instance == gpu->gpu_instance &&
        all.compute[i].slices == SLICES[number])
      to[(*count)++] = handle(gpu, gpu->gpu_instance, all.compute[i].id);
  return NVML_SUCCESS;
}

int nvmlGpuInstanceGetComputeInstanceById(card_t *gpu, unsigned id, card_t **compute) {
  CHECK(parent(gpu));
  instances_t all;
  if (!inside(gpu, &all)) return NVML_INVALID_ARGUMENT;
  if (!compute_of(&all, gpu->gpu_instance, (int)id)) return NVML_NOT_FOUND;
  *compute = handle(gpu, gpu->gpu_instance, (int)id);
  return NVML_SUCCESS;
}

int nvmlComputeInstanceGetInfo_v2(card_t *compute, compute_info_t *info) {
  CHECK(parent(compute));
  instances_t all;
  instances_read(compute, &all);
  compute_instance_t *found =
      compute_of(&all, compute->gpu_instance, compute->compute_instance);
  if (!found) return NVML_INVALID_ARGUMENT;
  unsigned number = 0;
  while (number < COMPUTE_PROFILES && SLICES[number] != found->slices) number++;
  *info = (compute_info_t){parent(compute), handle(compute, found->gpu_instance, -1),
                           (unsigned)found->id, number, {found->start, found->slices}};
  return NVML_SUCCESS;
}
