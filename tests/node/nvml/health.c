/* Errors of memory, and modes of computing. */
#include "fake.h"

int nvmlDeviceGetComputeMode(card_t *card, unsigned *mode) {
  CHECK(card);
  long number = 0;
  state_numbers(card, "compute-mode", &number, 1);
  *mode = (unsigned)number;
  return NVML_SUCCESS;
}

int nvmlDeviceSetComputeMode(card_t *card, unsigned mode) {
  CHECK(card);
  if (mode > 3 || mode == 1) return NVML_INVALID_ARGUMENT;
  state_write(card, "compute-mode", "%u\n", mode);
  state_log("compute-mode %d %u", card->index, mode);
  return NVML_SUCCESS;
}

int nvmlDeviceGetEccMode(card_t *card, unsigned *current, unsigned *pending) {
  CHECK(card);
  *current = *pending = 1;
  return NVML_SUCCESS;
}

/* The file "ecc": corrected and uncorrected since the start, then over the card's life. */
int nvmlDeviceGetTotalEccErrors(card_t *card, unsigned type, unsigned counter,
                                unsigned long long *count) {
  CHECK(card);
  if (type > 1 || counter > 1) return NVML_INVALID_ARGUMENT;
  long numbers[4] = {0};
  state_numbers(card, "ecc", numbers, 4);
  *count = (unsigned long long)numbers[2 * counter + type];
  return NVML_SUCCESS;
}

/* Any place of memory has the same count: nobody here needs to tell them apart. */
int nvmlDeviceGetMemoryErrorCounter(card_t *card, unsigned type, unsigned counter,
                                    unsigned location, unsigned long long *count) {
  (void)location;
  return nvmlDeviceGetTotalEccErrors(card, type, counter, count);
}

/* The file "rows": corrected, uncorrected, pending, failure. */
int nvmlDeviceGetRemappedRows(card_t *card, unsigned *corrected, unsigned *uncorrected,
                              unsigned *pending, unsigned *failed) {
  CHECK(card);
  long numbers[4] = {0};
  state_numbers(card, "rows", numbers, 4);
  *corrected = (unsigned)numbers[0];
  *uncorrected = (unsigned)numbers[1];
  *pending = (unsigned)numbers[2];
  *failed = (unsigned)numbers[3];
  return NVML_SUCCESS;
}

typedef struct {
  unsigned field, scope;
  long long timestamp, latency;
  int value_type, result;
  union {
    unsigned ui;
    unsigned long long ull;
  } value;
} field_value_t;

enum { FIELD_RECOVERY_ACTION = 230 };

/* The file "recovery": what the card needs. Without it, the driver is too old to say. */
int nvmlDeviceGetFieldValues(card_t *card, int count, field_value_t *values) {
  CHECK(card);
  for (int i = 0; i < count; i++) {
    long number = 0;
    int is_known = values[i].field == FIELD_RECOVERY_ACTION &&
                   state_numbers(card, "recovery", &number, 1) == 1;
    values[i].result = is_known ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
    values[i].value.ull = 0;
    values[i].value.ui = (unsigned)number;
  }
  return NVML_SUCCESS;
}

/* NVML has no call for it: the stand-in for nvidia-smi uses this. 0 is the default of a card. */
int fake_set_timeslice(card_t *card, unsigned interval) {
  CHECK(card);
  if (interval > 3) return NVML_INVALID_ARGUMENT;
  state_write(card, "timeslice", "%u\n", interval);
  state_log("timeslice %d %u", card->index, interval);
  return NVML_SUCCESS;
}
