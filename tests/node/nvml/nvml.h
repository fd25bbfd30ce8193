/*
 * The part of NVIDIA's management interface that the fake library serves: numbers, structures and
 * their sizes are facts of the public interface; nothing else is taken from it.
 */
#ifndef FAKE_NVML_H
#define FAKE_NVML_H

#include <stdint.h>

enum {
  NVML_SUCCESS = 0,
  NVML_UNINITIALIZED = 1,
  NVML_INVALID_ARGUMENT = 2,
  NVML_NOT_SUPPORTED = 3,
  NVML_NO_PERMISSION = 4,
  NVML_NOT_FOUND = 6,
  NVML_INSUFFICIENT_SIZE = 7,
  NVML_DRIVER_NOT_LOADED = 9,
  NVML_TIMEOUT = 10,
  NVML_GPU_IS_LOST = 15,
  NVML_IN_USE = 19,
  NVML_INSUFFICIENT_RESOURCES = 23,
  NVML_VERSION_MISMATCH = 25,
  NVML_UNKNOWN = 999,
};

enum { LINK_GPU = 0, LINK_SWITCH = 2 };
enum { EVENT_SINGLE_BIT_ECC = 1, EVENT_DOUBLE_BIT_ECC = 2, EVENT_XID = 8 };
#define WHOLE_CARD 0xFFFFFFFFu /* instance IDs of an event that concerns no MIG instance */

typedef struct {
  char legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char id[32];
} pci_info_t;

typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2_t;
typedef struct { unsigned version, value; } addressing_t;

typedef struct {
  unsigned version;
  uint8_t cluster[16];
  unsigned status, clique, state, health;
} fabric_t; /* version 2; version 3 adds one byte of health that is left as it is */

typedef struct { unsigned start, size; } placement_t;

typedef struct {
  unsigned version, id, p2p, slices, instances;
  unsigned multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
  unsigned long long memory_mb;
  char name[96];
} gpu_profile_t;

typedef struct {
  unsigned version, id, slices, instances;
  unsigned multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
  char name[96];
} compute_profile_t;

typedef struct {
  unsigned multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
  unsigned gpu_slices, compute_slices;
  unsigned long long memory_mb;
} attributes_t;

#endif
