/* What a card, or a MIG device in it, says of itself. */
#include <string.h>

#include "fake.h"

static int known(int value, unsigned *to) {
  if (value < 0) return NVML_NOT_SUPPORTED;
  *to = (unsigned)value;
  return NVML_SUCCESS;
}

int nvmlDeviceGetUUID(card_t *card, char *text, unsigned size) {
  CHECK(card);
  if (card->gpu_instance >= 0) return mig_uuid(card, text, size);
  return give_text(text, size, card->uuid);
}

int nvmlDeviceGetName(card_t *card, char *text, unsigned size) {
  CHECK(card);
  if (card->gpu_instance >= 0) return mig_name(card, text, size);
  return give_text(text, size, card->name);
}

int nvmlDeviceGetIndex(card_t *card, unsigned *index) {
  CHECK(card);
  return known(card->index, index);
}

int nvmlDeviceGetMinorNumber(card_t *card, unsigned *minor) {
  CHECK(card);
  return known(card->minor, minor);
}

int nvmlDeviceGetBrand(card_t *card, unsigned *brand) {
  CHECK(card);
  return known(card->brand, brand);
}

int nvmlDeviceGetArchitecture(card_t *card, unsigned *architecture) {
  CHECK(card);
  return known(card->architecture, architecture);
}

int nvmlDeviceGetModuleId(card_t *card, unsigned *module) {
  CHECK(card);
  return known(card->module, module);
}

int nvmlDeviceGetAddressingMode(card_t *card, addressing_t *mode) {
  CHECK(card);
  if (mode->version != 0x1000008) return NVML_VERSION_MISMATCH;
  return known(card->addressing, &mode->value);
}

int nvmlDeviceGetCudaComputeCapability(card_t *card, int *major, int *minor) {
  CHECK(card);
  if (card->major_version == 0) return NVML_NOT_SUPPORTED;
  *major = card->major_version;
  *minor = card->minor_version;
  return NVML_SUCCESS;
}

static unsigned long long total(const card_t *card) {
  attributes_t attributes;
  if (card->gpu_instance < 0) return card->memory_mb << 20;
  return mig_attributes(card, &attributes) == NVML_SUCCESS ? attributes.memory_mb << 20 : 0;
}

int nvmlDeviceGetMemoryInfo(card_t *card, memory_t *memory) {
  CHECK(card);
  *memory = (memory_t){.total = total(card), .free = total(card)};
  return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(card_t *card, memory_v2_t *memory) {
  CHECK(card);
  if (memory->version != 0x2000028) return NVML_VERSION_MISMATCH;
  memory->total = memory->free = total(card);
  memory->reserved = memory->used = 0;
  return NVML_SUCCESS;
}

static int pci(const char *address, pci_info_t *info) {
  memset(info, 0, sizeof *info);
  sscanf(address, "%x:%x:%x", &info->domain, &info->bus, &info->device);
  snprintf(info->legacy, sizeof info->legacy, "%04X:%02X:%02X.0", info->domain & 0xFFFF,
           info->bus & 0xFF, info->device & 0xFF);
  return give_text(info->id, sizeof info->id, address);
}

int nvmlDeviceGetPciInfo_v3(card_t *card, pci_info_t *info) {
  CHECK(card);
  return pci(card->pci, info);
}

/* NVLink and the fabric of switches */

static int linked(const card_t *card, unsigned link) {
  if (card->links == 0) return NVML_NOT_SUPPORTED;
  return link < (unsigned)card->links ? NVML_SUCCESS : NVML_INVALID_ARGUMENT;
}

int nvmlDeviceGetNvLinkState(card_t *card, unsigned link, unsigned *active) {
  CHECK(card);
  int code = linked(card, link);
  if (code == NVML_SUCCESS) *active = card->link[link].kind >= 0;
  return code;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(card_t *card, unsigned link, unsigned *type) {
  CHECK(card);
  int code = linked(card, link);
  return code == NVML_SUCCESS ? known(card->link[link].kind, type) : code;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(card_t *card, unsigned link, pci_info_t *info) {
  CHECK(card);
  int code = linked(card, link);
  if (code != NVML_SUCCESS) return code;
  return card->link[link].remote[0] ? pci(card->link[link].remote, info) : NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetGpuFabricInfoV(card_t *card, fabric_t *fabric) {
  CHECK(card);
  if (fabric->version != 0x2000024 && fabric->version != 0x3000028) return NVML_VERSION_MISMATCH;
  if (card->fabric_state < 0) return NVML_NOT_SUPPORTED;
  memcpy(fabric->cluster, card->cluster, sizeof fabric->cluster);
  fabric->status = card->fabric_status;
  fabric->clique = card->clique;
  fabric->state = (unsigned)card->fabric_state;
  fabric->health = 0;
  return NVML_SUCCESS;
}
