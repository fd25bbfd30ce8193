/* Reads the description of the machine: one word of key a line, then its values. */
#define _GNU_SOURCE
#include <libgen.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

machine_t machine;

static int complain(const char *path, int line, const char *text) {
  fprintf(stderr, "fake nvml: %s:%d: cannot read %s\n", path, line, text);
  return NVML_UNKNOWN;
}

static card_t *new_card(const char *name) {
  if (machine.cards == CARDS_MAX) return NULL;
  card_t *card = &machine.card[machine.cards];
  memset(card, 0, sizeof *card);
  card->index = card->minor = machine.cards++;
  card->gpu_instance = card->compute_instance = -1;
  card->brand = card->architecture = card->addressing = card->module = -1;
  card->fabric_state = card->mig = -1;
  snprintf(card->name, sizeof card->name, "%.95s", name);
  return card;
}

static int read_link(card_t *card, const char *values) {
  char kind[16], remote[32] = "";
  if (card->links == LINKS_MAX || sscanf(values, "%15s %31s", kind, remote) < 1) return 0;
  link_t *link = &card->link[card->links++];
  link->kind = strcmp(kind, "switch") == 0 ? LINK_SWITCH : strcmp(kind, "gpu") == 0 ? LINK_GPU : -1;
  if (strcmp(kind, "down") == 0) return 1;
  memcpy(link->remote, remote, sizeof remote);
  return link->kind >= 0;
}

static int read_fabric(card_t *card, const char *values) {
  char cluster[33];
  if (sscanf(values, "%32[0-9a-f] %u %d %u", cluster, &card->clique, &card->fabric_state,
             &card->fabric_status) < 3)
    return 0;
  for (int i = 0; i < 16; i++) {
    unsigned byte;
    if (sscanf(cluster + 2 * i, "%2x", &byte) != 1) return 0;
    card->cluster[i] = (uint8_t)byte;
  }
  return 1;
}

static int read_placements(profile_t *profile, char *text) {
  char *rest = NULL;
  for (char *part = strtok_r(text, ",", &rest); part; part = strtok_r(NULL, ",", &rest)) {
    placement_t *placement = &profile->placement[profile->placements];
    if (profile->placements++ == PLACEMENTS_MAX) return 0;
    if (sscanf(part, "%u:%u", &placement->start, &placement->size) != 2) return 0;
  }
  return profile->placements > 0;
}

/* INDEX ID NAME SLICES MEMORY-MB SMS COPY DEC ENC JPEG OFA COUNT START:SIZE,... */
static int read_profile(card_t *card, const char *line) {
  if (card->profiles == PROFILES_MAX) return 0;
  profile_t *profile = &card->profile[card->profiles++];
  gpu_profile_t *info = &profile->info;
  char placements[128], name[64];
  memset(profile, 0, sizeof *profile);
  int read = sscanf(line, "%u %u %63s %u %llu %u %u %u %u %u %u %u %127s", &profile->index,
                    &info->id, name, &info->slices, &info->memory_mb, &info->multiprocessors,
                    &info->copy_engines, &info->decoders, &info->encoders, &info->jpegs,
                    &info->ofas, &info->instances, placements);
  snprintf(info->name, sizeof info->name, "MIG %s", name);
  return read == 13 && read_placements(profile, placements);
}

static int read_mig(card_t *card, const char *values, const char *description) {
  char name[64], path[4096], folder[2048], line[512];
  if (sscanf(values, "%d %63s", &card->mig, name) != 2) return 0;
  snprintf(folder, sizeof folder, "%s", description);
  snprintf(path, sizeof path, "%s/%s", dirname(folder), name);
  FILE *file = fopen(path, "re");
  if (!file) return 0;
  int fine = 1;
  while (fine && fgets(line, sizeof line, file))
    if (line[0] != '#' && line[0] != '\n') fine = read_profile(card, line);
  fclose(file);
  return fine;
}

static int read_number(const char *key, const char *values, card_t *card) {
  const struct { const char *key; int *to; } numbers[] = {
      {"brand", &card->brand},           {"architecture", &card->architecture},
      {"addressing", &card->addressing}, {"module", &card->module},
      {"minor", &card->minor},
  };
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (strcmp(key, numbers[i].key) == 0) return sscanf(values, "%d", numbers[i].to) == 1;
  return 0;
}

static int read_card_line(card_t *card, const char *key, const char *values, const char *path) {
  size_t used = strlen(card->errors);
  if (strcmp(key, "uuid") == 0) return sscanf(values, "%95s", card->uuid) == 1;
  if (strcmp(key, "pci") == 0) return sscanf(values, "%31s", card->pci) == 1;
  if (strcmp(key, "memory") == 0) return sscanf(values, "%llu", &card->memory_mb) == 1;
  if (strcmp(key, "capability") == 0)
    return sscanf(values, "%d.%d", &card->major_version, &card->minor_version) == 2;
  if (strcmp(key, "link") == 0) return read_link(card, values);
  if (strcmp(key, "fabric") == 0) return read_fabric(card, values);
  if (strcmp(key, "mig") == 0) return read_mig(card, values, path);
  if (strcmp(key, "error") == 0)
    return snprintf(card->errors + used, sizeof card->errors - used, "%s\n", values) > 0;
  return read_number(key, values, card);
}

static int read_line(const char *key, const char *values, card_t **card, const char *path) {
  if (strcmp(key, "driver") == 0) return sscanf(values, "%31s", machine.driver) == 1;
  if (strcmp(key, "cuda") == 0) return sscanf(values, "%d", &machine.cuda) == 1;
  if (strcmp(key, "card") == 0) return (*card = new_card(values)) != NULL;
  return *card && read_card_line(*card, key, values, path);
}

int describe(const char *path) {
  FILE *file = path ? fopen(path, "re") : NULL;
  if (!file) return NVML_DRIVER_NOT_LOADED;
  memset(&machine, 0, sizeof machine);
  char text[512], key[32], values[400];
  card_t *card = NULL;
  int line = 0, code = NVML_SUCCESS;
  while (code == NVML_SUCCESS && fgets(text, sizeof text, file)) {
    line++;
    values[0] = '\0';
    if (sscanf(text, " %31s %399[^\n]", key, values) < 1 || key[0] == '#') continue;
    if (!read_line(key, values, &card, path)) code = complain(path, line, text);
  }
  fclose(file);
  return code;
}
