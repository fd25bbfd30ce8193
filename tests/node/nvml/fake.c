/*
 * Just enough of libnvidia-ml.so.1 to read cards from: five of them, of which 0 and 1 hang on an
 * NVSwitch, 2 and 3 are linked to each other, and 4 has no link and does not know its brand.
 * Signatures and constants are those of NVIDIA's public nvml.h.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, CARDS = 5, LINKS = 2 };
enum { BRAND_NVIDIA = 14, ARCH_AMPERE = 7, TYPE_GPU = 0, TYPE_SWITCH = 2 };

typedef struct { int number; } card_t;
typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct {
  char legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char id[32];
} pci_t;

static card_t cards[CARDS] = {{0}, {1}, {2}, {3}, {4}};

static int pci_of(int number, pci_t *pci) {
  memset(pci, 0, sizeof *pci);
  pci->bus = 0x1B + number;
  snprintf(pci->id, sizeof pci->id, "00000000:%02X:00.0", pci->bus);
  return OK;
}

int nvmlInitWithFlags(unsigned flags) { (void)flags; return OK; }
int nvmlInit_v2(void) { return OK; }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) { return code == NOT_SUPPORTED ? "Not Supported" : "Error"; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) {
  snprintf(text, size, "580.95.05");
  return OK;
}
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 12080; return OK; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = CARDS; return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, card_t **card) {
  *card = &cards[index];
  return index < CARDS ? OK : INVALID;
}
int nvmlDeviceGetUUID(card_t *card, char *text, unsigned size) {
  snprintf(text, size, "GPU-%d", card->number);
  return OK;
}
int nvmlDeviceGetName(card_t *card, char *text, unsigned size) {
  (void)card;
  snprintf(text, size, "NVIDIA A100-SXM4-40GB");
  return OK;
}
int nvmlDeviceGetBrand(card_t *card, unsigned *brand) {
  *brand = BRAND_NVIDIA;
  return card->number == 4 ? NOT_SUPPORTED : OK;
}
int nvmlDeviceGetArchitecture(card_t *card, unsigned *arch) {
  (void)card;
  *arch = ARCH_AMPERE;
  return OK;
}
int nvmlDeviceGetMemoryInfo(card_t *card, memory_t *memory) {
  (void)card;
  memory->total = 40960ULL << 20;
  return OK;
}
int nvmlDeviceGetCudaComputeCapability(card_t *card, int *major, int *minor) {
  (void)card;
  *major = 8;
  *minor = 0;
  return OK;
}
int nvmlDeviceGetPciInfo_v3(card_t *card, pci_t *pci) { return pci_of(card->number, pci); }
int nvmlDeviceGetNvLinkState(card_t *card, unsigned link, unsigned *active) {
  if (link >= LINKS) return INVALID;
  if (card->number == 4) return NOT_SUPPORTED;
  *active = link == 0;
  return OK;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(card_t *card, unsigned link, unsigned *type) {
  (void)link;
  *type = card->number < 2 ? TYPE_SWITCH : TYPE_GPU;
  return OK;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(card_t *card, unsigned link, pci_t *pci) {
  (void)link;
  return card->number < 2 ? NOT_SUPPORTED : pci_of(card->number ^ 1, pci);
}
