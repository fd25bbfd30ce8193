"""What MIG means for one card: its profiles with their places, and the partitions that it has."""

import ctypes

import pynvml

from driver.node.card import MIB
from driver.node.mig import MigCapability, MigInstance, MigProfile
from driver.node.nvidia.library import ABSENT, Questions, optional, text

# NVML writes "MIG 1g.10gb" for a profile, and "NVIDIA H100 80GB HBM3 MIG 1g.10gb" for a device.
_BEFORE_PROFILE = "MIG "


def read(ask: Questions) -> MigCapability | None:
    """How the card can be cut up, None when it cannot; `ask.failed` tells when it fails at it."""
    mode = ask(pynvml.nvmlDeviceGetMigMode)
    if mode is None:
        return None
    enabled, pending = (part == pynvml.NVML_DEVICE_MIG_ENABLE for part in mode)
    return MigCapability(
        enabled=enabled,
        pending=pending,
        profiles=ask(profiles) or (),
        instances=(ask(instances) or ()) if enabled else (),
    )


def profiles(handle: object) -> tuple[MigProfile, ...]:
    """All profiles that the card offers, in NVML's order; raises `NVMLError`."""
    numbers = range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT)
    found = (optional(_profile, handle, number) for number in numbers)
    return tuple(profile for profile in found if profile is not None)


def instances(handle: object) -> tuple[MigInstance, ...]:
    """The partitions that the card has, in NVML's order; raises `NVMLError`."""
    found = []
    for number in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            device = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)
            found.append(_instance(handle, device))
        except (pynvml.NVMLError_NotFound, *ABSENT):
            # There may be gaps before the last one, and one may go while it is read.
            continue
    return tuple(found)


def profile_name(info: pynvml.c_nvmlGpuInstanceProfileInfo_v2_t) -> str:
    """What a profile is called: "1g.10gb"."""
    return text(info.name).removeprefix(_BEFORE_PROFILE)


def _profile(handle: object, number: int) -> MigProfile | None:
    info = pynvml.nvmlDeviceGetGpuInstanceProfileInfoV(handle, number)
    places = _places(handle, info.id)
    if not places:
        return None
    return MigProfile(
        name=profile_name(info),
        size=places[0].size,
        starts=tuple(place.start for place in places),
        memory=info.memorySizeMB * MIB,
        multiprocessors=info.multiprocessorCount,
        copy_engines=info.copyEngineCount,
        decoders=info.decoderCount,
        encoders=info.encoderCount,
        jpeg_engines=info.jpegCount,
        ofa_engines=info.ofaCount,
    )


def _places(handle: object, profile: int) -> list[pynvml.c_nvmlGpuInstancePlacement_t]:
    count = ctypes.c_uint(0)
    ask = pynvml.nvmlDeviceGetGpuInstancePossiblePlacements
    ask(handle, profile, None, ctypes.byref(count))
    places = (pynvml.c_nvmlGpuInstancePlacement_t * count.value)()
    ask(handle, profile, places, ctypes.byref(count))
    return list(places[: count.value])


def _instance(handle: object, device: object) -> MigInstance:
    inside = pynvml.nvmlDeviceGetGpuInstanceById(handle, pynvml.nvmlDeviceGetGpuInstanceId(device))
    place = pynvml.nvmlGpuInstanceGetInfo(inside).placement
    name = text(pynvml.nvmlDeviceGetName(device))
    return MigInstance(
        uuid=text(pynvml.nvmlDeviceGetUUID(device)),
        profile=name.rpartition(_BEFORE_PROFILE)[2],
        start=place.start,
        size=place.size,
    )
