/*
 * Events: lines of the file "events" of the state, "CARD TYPE DATA [GPU-INSTANCE COMPUTE-INSTANCE]".
 * A set delivers the lines that were added after it was made, in their order.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "fake.h"

typedef struct {
  card_t *device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
} event_t;

typedef struct {
  long offset;
  unsigned long long wanted[CARDS_MAX]; /* types, by card */
} set_t;

int nvmlEventSetCreate(set_t **set) {
  CHECK(NULL);
  if (!(*set = calloc(1, sizeof **set))) return NVML_UNKNOWN;
  char path[4096];
  struct stat status;
  state_path(NULL, "events", path, sizeof path);
  if (stat(path, &status) == 0) (*set)->offset = (long)status.st_size;
  return NVML_SUCCESS;
}

int nvmlEventSetFree(set_t *set) {
  CHECK(NULL);
  free(set);
  return NVML_SUCCESS;
}

int nvmlDeviceGetSupportedEventTypes(card_t *card, unsigned long long *types) {
  CHECK(card);
  *types = EVENT_SINGLE_BIT_ECC | EVENT_DOUBLE_BIT_ECC | EVENT_XID;
  return NVML_SUCCESS;
}

int nvmlDeviceRegisterEvents(card_t *card, unsigned long long types, set_t *set) {
  CHECK(card);
  unsigned long long supported;
  nvmlDeviceGetSupportedEventTypes(card, &supported);
  if (types & ~supported) return NVML_NOT_SUPPORTED;
  set->wanted[card->index] |= types;
  return NVML_SUCCESS;
}

static int read_event(const char *line, event_t *event) {
  int card = -1;
  event->gpu_instance = event->compute_instance = WHOLE_CARD;
  int read = sscanf(line, "%d %lli %lli %i %i", &card, (long long *)&event->type,
                    (long long *)&event->data, (int *)&event->gpu_instance,
                    (int *)&event->compute_instance);
  if (read < 3 || card < 0 || card >= machine.cards) return 0;
  event->device = &machine.card[card];
  return 1;
}

/* The next event that the set waits for, if there is one; a line still being written waits too. */
static int next(set_t *set, event_t *event) {
  FILE *file = state_open(NULL, "events", "re");
  if (!file) return 0;
  char line[256];
  int found = 0;
  fseek(file, set->offset, SEEK_SET);
  while (!found && fgets(line, sizeof line, file) && strchr(line, '\n')) {
    set->offset = ftell(file);
    found = read_event(line, event) && (set->wanted[event->device->index] & event->type);
  }
  fclose(file);
  return found;
}

static long now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

int nvmlEventSetWait_v2(set_t *set, event_t *event, unsigned timeout_ms) {
  const struct timespec pause = {.tv_nsec = 10 * 1000000};
  long deadline = now_ms() + (long)timeout_ms;
  for (;;) {
    CHECK(NULL);
    memset(event, 0, sizeof *event);
    if (next(set, event)) return NVML_SUCCESS;
    if (now_ms() >= deadline) return NVML_TIMEOUT;
    nanosleep(&pause, NULL);
  }
}
