/* State that outlives the process: small files, one lock for all of them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake.h"

static void folder(const card_t *card, char *path, size_t size) {
  const char *description = getenv("QUADRANT_FAKE_NVML");
  snprintf(path, size, "%s.state", description ? description : "/nonexistent");
  mkdir(path, 0755);
  if (card) {
    size_t used = strlen(path);
    snprintf(path + used, size - used, "/card-%d", card->index);
    mkdir(path, 0755);
  }
}

void state_path(const card_t *card, const char *name, char *path, size_t size) {
  folder(card, path, size);
  size_t used = strlen(path);
  snprintf(path + used, size - used, "/%s", name);
}

int state_lock(void) {
  char path[4096];
  state_path(NULL, "lock", path, sizeof path);
  int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  while (descriptor >= 0 && flock(descriptor, LOCK_EX) != 0 && errno == EINTR) continue;
  return descriptor;
}

FILE *state_open(const card_t *card, const char *name, const char *mode) {
  char path[4096];
  state_path(card, name, path, sizeof path);
  return fopen(path, mode);
}

int state_exists(const card_t *card, const char *name) {
  char path[4096];
  state_path(card, name, path, sizeof path);
  return access(path, F_OK) == 0;
}

int state_numbers(const card_t *card, const char *name, long *numbers, int count) {
  FILE *file = state_open(card, name, "re");
  if (!file) return 0;
  int read = 0;
  while (read < count && fscanf(file, "%li", &numbers[read]) == 1) read++;
  fclose(file);
  return read;
}

/* Renamed into place: a reader without the lock sees the old file or the new one. */
void state_write(const card_t *card, const char *name, const char *format, ...) {
  char path[4096], temporary[4200];
  state_path(card, name, path, sizeof path);
  snprintf(temporary, sizeof temporary, "%s.%d.tmp", path, (int)gettid());
  FILE *file = fopen(temporary, "we");
  if (!file) return;
  va_list arguments;
  va_start(arguments, format);
  vfprintf(file, format, arguments);
  va_end(arguments);
  fclose(file);
  rename(temporary, path);
}

void state_log(const char *format, ...) {
  FILE *file = state_open(NULL, "log", "ae");
  if (!file) return;
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  fprintf(file, "%s\n", line);
  fclose(file);
}

static int ordered(FILE *file, const char *function) {
  char name[128];
  int code, found = 0;
  while (!found && fscanf(file, "%127s %d", name, &code) == 2)
    if (strcmp(name, "*") == 0 || strcmp(name, function) == 0) found = code;
  fclose(file);
  return found;
}

int state_error(const card_t *card, const char *function) {
  if (card && state_exists(card, "answers")) return NVML_SUCCESS;
  FILE *file = state_open(card, "errors", "re");
  int code = file ? ordered(file, function) : 0;
  if (code == 0 && card && card->errors[0] &&
      (file = fmemopen((void *)card->errors, strlen(card->errors), "r")))
    code = ordered(file, function);
  return code;
}
