/* The library itself: opening, closing, versions, errors, and handles of cards. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static int users;

int nvmlInitWithFlags(unsigned flags) {
  (void)flags;
  pthread_mutex_lock(&opening);
  int code = state_error(NULL, __func__);
  if (code == NVML_SUCCESS && users == 0) code = describe(getenv("QUADRANT_FAKE_NVML"));
  if (code == NVML_SUCCESS) users++;
  pthread_mutex_unlock(&opening);
  return code;
}

int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

int nvmlShutdown(void) {
  pthread_mutex_lock(&opening);
  int code = users > 0 ? NVML_SUCCESS : NVML_UNINITIALIZED;
  if (users > 0) users--;
  pthread_mutex_unlock(&opening);
  return code;
}

int check(const card_t *card, const char *function) {
  pthread_mutex_lock(&opening);
  int open = users > 0;
  pthread_mutex_unlock(&opening);
  return open ? state_error(card, function) : NVML_UNINITIALIZED;
}

int give_text(char *to, unsigned size, const char *text) {
  if (strlen(text) >= size) return NVML_INSUFFICIENT_SIZE;
  memcpy(to, text, strlen(text) + 1);
  return NVML_SUCCESS;
}

const char *nvmlErrorString(int code) {
  static const struct { int code; const char *text; } known[] = {
      {NVML_SUCCESS, "Success"},
      {NVML_UNINITIALIZED, "Uninitialized"},
      {NVML_INVALID_ARGUMENT, "Invalid Argument"},
      {NVML_NOT_SUPPORTED, "Not Supported"},
      {NVML_NO_PERMISSION, "Insufficient Permissions"},
      {NVML_NOT_FOUND, "Not Found"},
      {NVML_INSUFFICIENT_SIZE, "Insufficient Size"},
      {NVML_DRIVER_NOT_LOADED, "Driver Not Loaded"},
      {NVML_TIMEOUT, "Timeout"},
      {NVML_GPU_IS_LOST, "GPU is lost"},
      {NVML_IN_USE, "In use by another client"},
      {NVML_INSUFFICIENT_RESOURCES, "Insufficient Resources"},
      {NVML_VERSION_MISMATCH, "Argument version mismatch"},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (known[i].code == code) return known[i].text;
  return "Unknown Error";
}

int nvmlSystemGetDriverVersion(char *text, unsigned size) {
  CHECK(NULL);
  return give_text(text, size, machine.driver);
}

int nvmlSystemGetCudaDriverVersion_v2(int *version) {
  CHECK(NULL);
  *version = machine.cuda;
  return NVML_SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
  CHECK(NULL);
  *count = (unsigned)machine.cards;
  return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, card_t **card) {
  CHECK(NULL);
  if (index >= (unsigned)machine.cards) return NVML_INVALID_ARGUMENT;
  CHECK(&machine.card[index]);
  *card = &machine.card[index];
  return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, card_t **card) {
  CHECK(NULL);
  *card = mig_by_uuid(uuid);
  for (int i = 0; i < machine.cards && !*card; i++)
    if (strcmp(machine.card[i].uuid, uuid) == 0) *card = &machine.card[i];
  if (!*card) return NVML_NOT_FOUND;
  CHECK(*card);
  return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, card_t **card) {
  CHECK(NULL);
  for (int i = 0; i < machine.cards; i++) {
    const char *full = machine.card[i].pci;
    /* Both "0000:07:00.0" and "00000000:07:00.0" are understood. */
    if (strcasecmp(full, pci) != 0 && strcasecmp(full + 4, pci) != 0) continue;
    CHECK(&machine.card[i]);
    *card = &machine.card[i];
    return NVML_SUCCESS;
  }
  return NVML_NOT_FOUND;
}
