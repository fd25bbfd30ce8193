/* MIG: the mode, the profiles of a card, and the MIG devices that exist. */
#include <string.h>
#include <unistd.h>

#include "instances.h"

int nvmlDeviceGetMigMode(card_t *card, unsigned *current, unsigned *pending) {
  CHECK(card);
  return mig_mode(card, current, pending);
}

/* A card with the file "busy" keeps its mode until it is reset: here, until the file is gone and
 * the mode is set again. */
int nvmlDeviceSetMigMode(card_t *card, unsigned mode, unsigned *activation) {
  CHECK(card);
  unsigned current, pending;
  int lock = state_lock(), code = mig_mode(card, &current, &pending);
  instances_t all;
  instances_read(card, &all);
  if (code == NVML_SUCCESS && mode > 1) code = NVML_INVALID_ARGUMENT;
  if (code == NVML_SUCCESS && all.gpus > 0 && mode != current) code = NVML_IN_USE;
  if (code == NVML_SUCCESS) {
    int busy = mode != current && state_exists(card, "busy");
    *activation = busy ? NVML_IN_USE : NVML_SUCCESS;
    state_write(card, "mig-mode", "%u %u\n", busy ? current : mode, mode);
    state_log("mig-mode %d %u", card->index, mode);
  }
  close(lock);
  return code;
}

static const profile_t *by_index(const card_t *card, unsigned index) {
  for (int i = 0; i < card->profiles; i++)
    if (card->profile[i].index == index) return &card->profile[i];
  return NULL;
}

int nvmlDeviceGetGpuInstanceProfileInfoV(card_t *card, unsigned index, gpu_profile_t *info) {
  CHECK(card);
  if (info->version != 0x2000098) return NVML_VERSION_MISMATCH;
  const profile_t *profile = by_index(card, index);
  if (!profile) return index < 18 ? NVML_NOT_SUPPORTED : NVML_INVALID_ARGUMENT;
  unsigned version = info->version;
  *info = profile->info;
  info->version = version;
  return NVML_SUCCESS;
}

int nvmlDeviceGetGpuInstancePossiblePlacements_v2(card_t *card, unsigned id, placement_t *to,
                                                  unsigned *count) {
  CHECK(card);
  for (int i = 0; i < card->profiles; i++) {
    const profile_t *profile = &card->profile[i];
    if (profile->info.id != id) continue;
    unsigned room = *count;
    *count = profile->placements;
    if (!to) return NVML_SUCCESS;
    if (room < profile->placements) return NVML_INSUFFICIENT_SIZE;
    memcpy(to, profile->placement, profile->placements * sizeof *to);
    return NVML_SUCCESS;
  }
  return NVML_NOT_SUPPORTED;
}

/* MIG devices: one for each compute instance */

int nvmlDeviceGetMaxMigDeviceCount(card_t *card, unsigned *count) {
  CHECK(card);
  *count = card->mig < 0 ? 0 : 7;
  return NVML_SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(card_t *card, unsigned index, card_t **device) {
  CHECK(card);
  unsigned current, pending;
  if (mig_mode(card, &current, &pending) != NVML_SUCCESS || !current) return NVML_NOT_SUPPORTED;
  instances_t all;
  instances_read(card, &all);
  if (index >= (unsigned)all.computes) return NVML_NOT_FOUND;
  *device = handle(card, all.compute[index].gpu_instance, all.compute[index].id);
  return NVML_SUCCESS;
}

int nvmlDeviceIsMigDeviceHandle(card_t *device, unsigned *is_mig) {
  CHECK(NULL);
  *is_mig = device->gpu_instance >= 0;
  return NVML_SUCCESS;
}

int nvmlDeviceGetGpuInstanceId(card_t *device, unsigned *id) {
  CHECK(device);
  if (device->gpu_instance < 0) return NVML_NOT_SUPPORTED;
  *id = (unsigned)device->gpu_instance;
  return NVML_SUCCESS;
}

int nvmlDeviceGetComputeInstanceId(card_t *device, unsigned *id) {
  CHECK(device);
  if (device->gpu_instance < 0) return NVML_NOT_SUPPORTED;
  *id = (unsigned)device->compute_instance;
  return NVML_SUCCESS;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(card_t *device, card_t **card) {
  CHECK(NULL);
  if (device->gpu_instance < 0) return NVML_INVALID_ARGUMENT;
  *card = parent(device);
  return NVML_SUCCESS;
}

static const profile_t *profile_of(const card_t *device, compute_instance_t *compute) {
  instances_t all;
  instances_read(device, &all);
  gpu_instance_t *gpu = gpu_of(&all, device->gpu_instance);
  compute_instance_t *found = compute_of(&all, device->gpu_instance, device->compute_instance);
  if (!gpu || !found) return NULL;
  *compute = *found;
  return &parent(device)->profile[gpu->profile];
}

int mig_attributes(const card_t *device, attributes_t *to) {
  compute_instance_t compute;
  const profile_t *profile = profile_of(device, &compute);
  if (!profile) return NVML_NOT_FOUND;
  const gpu_profile_t *info = &profile->info;
  *to = (attributes_t){
      .multiprocessors = info->multiprocessors * compute.slices / info->slices,
      .copy_engines = info->copy_engines,
      .decoders = info->decoders,
      .encoders = info->encoders,
      .jpegs = info->jpegs,
      .ofas = info->ofas,
      .gpu_slices = info->slices,
      .compute_slices = compute.slices,
      .memory_mb = info->memory_mb,
  };
  return NVML_SUCCESS;
}

int nvmlDeviceGetAttributes_v2(card_t *device, attributes_t *attributes) {
  CHECK(device);
  if (device->gpu_instance < 0) return NVML_NOT_SUPPORTED;
  return mig_attributes(device, attributes);
}

int mig_name(const card_t *device, char *text, size_t size) {
  compute_instance_t compute;
  const profile_t *profile = profile_of(device, &compute);
  if (!profile) return NVML_NOT_FOUND;
  const char *kind = profile->info.name + strlen("MIG ");
  if (compute.slices == profile->info.slices)
    snprintf(text, size, "%s MIG %s", parent(device)->name, kind);
  else
    snprintf(text, size, "%s MIG %uc.%s", parent(device)->name, compute.slices, kind);
  return NVML_SUCCESS;
}

/* The same instance of the same card has the same UUID, in every process. */
int mig_uuid(const card_t *device, char *text, size_t size) {
  compute_instance_t compute;
  if (!profile_of(device, &compute)) return NVML_NOT_FOUND;
  uint64_t hash[2] = {0xCBF29CE484222325u, 0x84222325CBF29CE4u};
  char seed[160];
  snprintf(seed, sizeof seed, "%s/%d/%d", parent(device)->uuid, device->gpu_instance,
           device->compute_instance);
  for (const char *c = seed; *c; c++)
    for (int i = 0; i < 2; i++) hash[i] = (hash[i] ^ (uint8_t)*c) * 0x100000001B3u;
  snprintf(text, size, "MIG-%08x-%04x-5%03x-8%03x-%012llx", (unsigned)(hash[0] >> 32),
           (unsigned)(hash[0] >> 16) & 0xFFFF, (unsigned)hash[0] & 0xFFF,
           (unsigned)(hash[1] >> 48) & 0xFFF, (unsigned long long)hash[1] & 0xFFFFFFFFFFFFu);
  return NVML_SUCCESS;
}

card_t *mig_by_uuid(const char *uuid) {
  for (int i = 0; i < machine.cards; i++) {
    instances_t all;
    char text[NAME_MAX_];
    instances_read(&machine.card[i], &all);
    for (int k = 0; k < all.computes; k++) {
      card_t *device = handle(&machine.card[i], all.compute[k].gpu_instance, all.compute[k].id);
      if (mig_uuid(device, text, sizeof text) == NVML_SUCCESS && strcmp(text, uuid) == 0)
        return device;
    }
  }
  return NULL;
}
