/*
 * A stand-in for nvidia-smi: "-q -x" with the elements that hack/device-check compares, and
 * "compute-policy -i CARD --set-timeslice N". It asks the library beside it, as the real one does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../nvml.h"

typedef struct card card_t;

int nvmlInit_v2(void);
const char *nvmlErrorString(int code);
int nvmlSystemGetDriverVersion(char *text, unsigned size);
int nvmlSystemGetCudaDriverVersion_v2(int *version);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, card_t **card);
int nvmlDeviceGetHandleByUUID(const char *uuid, card_t **card);
int nvmlDeviceGetUUID(card_t *card, char *text, unsigned size);
int nvmlDeviceGetName(card_t *card, char *text, unsigned size);
int nvmlDeviceGetBrand(card_t *card, unsigned *brand);
int nvmlDeviceGetArchitecture(card_t *card, unsigned *architecture);
int nvmlDeviceGetModuleId(card_t *card, unsigned *module);
int nvmlDeviceGetAddressingMode(card_t *card, addressing_t *mode);
int nvmlDeviceGetMemoryInfo(card_t *card, memory_t *memory);
int nvmlDeviceGetPciInfo_v3(card_t *card, pci_info_t *info);
int nvmlDeviceGetGpuFabricInfoV(card_t *card, fabric_t *fabric);
int nvmlDeviceGetMigMode(card_t *card, unsigned *current, unsigned *pending);
int nvmlDeviceGetMigDeviceHandleByIndex(card_t *card, unsigned index, card_t **device);
int nvmlDeviceGetGpuInstanceId(card_t *device, unsigned *id);
int nvmlDeviceGetComputeInstanceId(card_t *device, unsigned *id);
int fake_set_timeslice(card_t *card, unsigned interval);

static const char *BRANDS[] = {[2] = "Tesla", [5] = "GeForce", [14] = "NVIDIA"};
static const char *ARCHITECTURES[] = {
    [6] = "Turing", [7] = "Ampere", [8] = "Ada Lovelace", [9] = "Hopper", [10] = "Blackwell"};
static const char *MODES[] = {"None", "HMM", "ATS"};
static const char *SWITCH[] = {"Disabled", "Enabled"};

static void element(const char *name, const char *value) {
  printf("\t\t<%s>%s</%s>\n", name, value ? value : "N/A", name);
}

static void number(const char *name, unsigned value) {
  char text[16];
  snprintf(text, sizeof text, "%u", value);
  element(name, text);
}

static void asked(const char *name, int (*ask)(card_t *, unsigned *), card_t *card) {
  unsigned value;
  if (ask(card, &value) == NVML_SUCCESS)
    number(name, value);
  else
    element(name, NULL);
}

static void memory(card_t *card) {
  memory_t total;
  if (nvmlDeviceGetMemoryInfo(card, &total) != NVML_SUCCESS)
    printf("\t\t<fb_memory_usage><total>N/A</total></fb_memory_usage>\n");
  else
    printf("\t\t<fb_memory_usage><total>%llu MiB</total></fb_memory_usage>\n", total.total >> 20);
}

static void mig(card_t *card) {
  unsigned current, pending;
  int capable = nvmlDeviceGetMigMode(card, &current, &pending) == NVML_SUCCESS;
  printf("\t\t<mig_mode>\n");
  element("current_mig", capable ? SWITCH[current] : NULL);
  element("pending_mig", capable ? SWITCH[pending] : NULL);
  printf("\t\t</mig_mode>\n\t\t<mig_devices>\n");
  card_t *device;
  for (unsigned i = 0; nvmlDeviceGetMigDeviceHandleByIndex(card, i, &device) == NVML_SUCCESS; i++) {
    printf("\t\t<mig_device>\n");
    number("index", i);
    asked("gpu_instance_id", nvmlDeviceGetGpuInstanceId, device);
    asked("compute_instance_id", nvmlDeviceGetComputeInstanceId, device);
    memory(device);
    printf("\t\t</mig_device>\n");
  }
  printf("\t\t</mig_devices>\n");
}

static void fabric(card_t *card) {
  fabric_t info = {.version = 0x2000024};
  if (nvmlDeviceGetGpuFabricInfoV(card, &info) != NVML_SUCCESS) return;
  printf("\t\t<fabric>\n");
  element("state", info.state == 3 ? "Completed" : "In Progress");
  element("status", info.status == NVML_SUCCESS ? "Success" : nvmlErrorString((int)info.status));
  number("cliqueId", info.clique);
  printf("\t\t<clusterUuid>");
  for (int i = 0; i < 16; i++)
    printf("%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", info.cluster[i]);
  printf("</clusterUuid>\n\t\t</fabric>\n");
}

static void card_element(card_t *card) {
  char name[96] = "", uuid[96] = "";
  unsigned brand = 0, architecture = 0;
  addressing_t mode = {.version = 0x1000008};
  pci_info_t pci;
  nvmlDeviceGetPciInfo_v3(card, &pci);
  printf("\t<gpu id=\"%s\">\n", pci.id);
  element("product_name", nvmlDeviceGetName(card, name, sizeof name) ? NULL : name);
  element("product_brand", nvmlDeviceGetBrand(card, &brand) ? NULL : BRANDS[brand]);
  element("product_architecture",
          nvmlDeviceGetArchitecture(card, &architecture) ? NULL : ARCHITECTURES[architecture]);
  element("addressing_mode", nvmlDeviceGetAddressingMode(card, &mode) ? NULL : MODES[mode.value]);
  mig(card);
  element("uuid", nvmlDeviceGetUUID(card, uuid, sizeof uuid) ? NULL : uuid);
  asked("gpu_module_id", nvmlDeviceGetModuleId, card);
  printf("\t\t<pci>\n");
  element("pci_bus_id", pci.id);
  printf("\t\t</pci>\n");
  memory(card);
  fabric(card);
  printf("\t</gpu>\n");
}

static int query(void) {
  unsigned count = 0;
  int cuda = 0;
  char driver[96] = "";
  nvmlSystemGetDriverVersion(driver, sizeof driver);
  nvmlSystemGetCudaDriverVersion_v2(&cuda);
  nvmlDeviceGetCount_v2(&count);
  printf("<?xml version=\"1.0\" ?>\n<nvidia_smi_log>\n\t<driver_version>%s</driver_version>\n", driver);
  printf("\t<cuda_version>%d.%d</cuda_version>\n", cuda / 1000, cuda % 1000 / 10);
  printf("\t<attached_gpus>%u</attached_gpus>\n", count);
  for (unsigned i = 0; i < count; i++) {
    card_t *card;
    if (nvmlDeviceGetHandleByIndex_v2(i, &card) == NVML_SUCCESS) card_element(card);
  }
  printf("</nvidia_smi_log>\n");
  return 0;
}

static int find(const char *name, card_t **card) {
  char *end;
  unsigned long index = strtoul(name, &end, 10);
  if (*end == '\0') return nvmlDeviceGetHandleByIndex_v2((unsigned)index, card);
  return nvmlDeviceGetHandleByUUID(name, card);
}

static int compute_policy(int count, char **words) {
  const char *name = NULL, *interval = NULL;
  const char option[] = "--set-timeslice";
  for (int i = 0; i < count; i++) {
    const char *after = i + 1 < count ? words[i + 1] : NULL;
    if (strcmp(words[i], "-i") == 0) name = after;
    if (strcmp(words[i], option) == 0) interval = after;
    if (strncmp(words[i], "--set-timeslice=", sizeof option) == 0) interval = words[i] + sizeof option;
  }
  card_t *card;
  if (!name || !interval) {
    printf("Option requires -i and --set-timeslice.\n");
    return 2;
  }
  int code = find(name, &card);
  if (code == NVML_SUCCESS) code = fake_set_timeslice(card, (unsigned)atoi(interval));
  printf(code == NVML_SUCCESS ? "Set timeslice to %s for GPU %s\n"
                              : "Unable to set timeslice to %s for GPU %s\n", interval, name);
  return code;
}

int main(int count, char **words) {
  int code = nvmlInit_v2();
  if (code != NVML_SUCCESS) {
    printf("NVIDIA-SMI has failed: %s\n", nvmlErrorString(code));
    return code;
  }
  if (count > 1 && strcmp(words[1], "compute-policy") == 0)
    return compute_policy(count - 2, words + 2);
  if (count == 3 && strcmp(words[1], "-q") == 0 && strcmp(words[2], "-x") == 0) return query();
  printf("Invalid combination of input arguments: this stand-in knows -q -x and compute-policy.\n");
  return 2;
}
