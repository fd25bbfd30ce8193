"""The card port over NVML: partitions and modes.

Time slices have no call in NVML; `nvidia-smi` sets them through the driver.
"""

import ctypes
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pynvml
import structlog

from driver.model.gpuconfig import Interval
from driver.node.errors import CardFailedError, HardwareError, InventoryError
from driver.node.mig import MigInstance
from driver.node.nvidia import mig
from driver.node.nvidia.library import opened, optional
from driver.node.sharing.port import ComputeMode

_SMI = "nvidia-smi"
_SMI_TIMEOUT_S = 15.0
_INTERVALS = {Interval.DEFAULT: 0, Interval.SHORT: 1, Interval.MEDIUM: 2, Interval.LONG: 3}
_MODES = {
    ComputeMode.DEFAULT: pynvml.NVML_COMPUTEMODE_DEFAULT,
    ComputeMode.EXCLUSIVE_PROCESS: pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS,
}
# The card is not there any more, and neither is what it was told.
_GONE = (pynvml.NVMLError_NotFound, pynvml.NVMLError_GpuIsLost)
# The card is there, and does nothing before it is reset.
_FAILED = (
    pynvml.NVMLError_ResetRequired,
    pynvml.NVMLError_Unknown,
    pynvml.NVMLError_IrqIssue,
    pynvml.NVMLError_Timeout,
)

log = structlog.get_logger(__name__)


class NvmlControl:
    """Opens the library for each change."""

    def set_time_slice(self, uuid: str, interval: Interval) -> None:
        """As the port says."""
        number = _INTERVALS[interval]
        command = [_SMI, "compute-policy", "-i", uuid, f"--set-timeslice={number}"]
        try:
            done = subprocess.run(  # noqa: S603  (the UUID comes from NVML)
                command, capture_output=True, text=True, check=False, timeout=_SMI_TIMEOUT_S
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise HardwareError(f"{' '.join(command)}: {error}") from error
        if done.returncode != 0:
            said = " ".join(f"{done.stdout} {done.stderr}".split())
            raise HardwareError(f"{' '.join(command)} failed: {said}")

    def set_compute_mode(self, uuid: str, mode: ComputeMode) -> None:
        """As the port says; a card that is lost needs not be set back."""
        try:
            with _card(uuid, f"compute mode {mode}") as card:
                pynvml.nvmlDeviceSetComputeMode(card, _MODES[mode])
        except HardwareError as error:
            if mode is not ComputeMode.DEFAULT or not isinstance(_reason(error), _GONE):
                raise
            log.info("lost card not set back", card=uuid, mode=mode)

    def mig_enabled(self, uuid: str) -> bool:
        """As the port says; a card that is lost has no mode."""
        try:
            with _card(uuid, "its MIG mode") as card:
                mode = optional(pynvml.nvmlDeviceGetMigMode, card)
                return mode is not None and mode[0] == pynvml.NVML_DEVICE_MIG_ENABLE
        except HardwareError as error:
            if not isinstance(_reason(error), _GONE):
                raise
            return False

    def set_mig(self, uuid: str, *, enabled: bool) -> None:
        """As the port says."""
        wanted = pynvml.NVML_DEVICE_MIG_ENABLE if enabled else pynvml.NVML_DEVICE_MIG_DISABLE
        what = f"MIG mode {'on' if enabled else 'off'}"
        with _card(uuid, what) as card:
            pynvml.nvmlDeviceSetMigMode(card, wanted)
            if pynvml.nvmlDeviceGetMigMode(card)[0] != wanted:
                raise HardwareError(
                    f"card {uuid} takes {what} only when no program uses it: end what does, such "
                    "as a monitoring agent, or reset the card"
                )

    def instances(self, uuid: str) -> tuple[MigInstance, ...]:
        """As the port says."""
        if not self.mig_enabled(uuid):
            return ()
        with _card(uuid, "its partitions") as card:
            return mig.instances(card)

    def create_instance(self, uuid: str, profile: str, start: int) -> MigInstance:
        """As the port says."""
        with _card(uuid, f"a partition {profile} at {start}") as card:
            info = _profile(card, profile)
            _clear_remains(card, info, start)
            place = pynvml.c_nvmlGpuInstancePlacement_t(start=start, size=_size(card, profile))
            whole = pynvml.nvmlDeviceCreateGpuInstanceWithPlacement(
                card, info.id, ctypes.byref(place)
            )
            try:
                _fill(whole, info.sliceCount)
                return _at(card, profile, start)
            except BaseException:
                _remove(whole)
                raise

    def destroy_instance(self, uuid: str, instance: str) -> None:
        """As the port says; what is on a card that is lost is gone with it."""
        try:
            with _card(uuid, f"the end of partition {instance}") as card:
                device = pynvml.nvmlDeviceGetHandleByUUID(instance)
                inside = pynvml.nvmlDeviceGetGpuInstanceId(device)
                _remove(pynvml.nvmlDeviceGetGpuInstanceById(card, inside))
        except HardwareError as error:
            if not isinstance(_reason(error), _GONE):
                raise
            log.info("partition is gone already", partition=instance, card=uuid)


@contextmanager
def _card(uuid: str, what: str) -> Iterator[object]:
    try:
        with opened():
            yield pynvml.nvmlDeviceGetHandleByUUID(uuid)
    except InventoryError as error:
        said = f"card {uuid} cannot be given {what}: {error.__cause__}"
        if isinstance(error.__cause__, _FAILED):
            raise CardFailedError(f"{said}; end what uses the card and reset it") from error
        raise HardwareError(said) from error


def _reason(error: HardwareError) -> BaseException | None:
    return error.__cause__.__cause__ if error.__cause__ is not None else None


def _profile(card: object, name: str) -> pynvml.c_nvmlGpuInstanceProfileInfo_v2_t:
    for number in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        info = optional(pynvml.nvmlDeviceGetGpuInstanceProfileInfoV, card, number)
        if info is not None and mig.profile_name(info) == name:
            return info
    raise HardwareError(f"the card has no MIG profile {name}")


def _size(card: object, name: str) -> int:
    return next(profile.size for profile in mig.profiles(card) if profile.name == name)


def _at(card: object, profile: str, start: int) -> MigInstance:
    there = mig.instances(card)
    return next(one for one in there if (one.profile, one.start) == (profile, start))


def _clear_remains(
    card: object, info: pynvml.c_nvmlGpuInstanceProfileInfo_v2_t, start: int
) -> None:
    """A crash in the middle leaves a GPU instance without compute instances, which has no UUID."""
    found = (pynvml.c_nvmlGpuInstance_t * max(info.instanceCount, 1))()
    count = ctypes.c_uint(len(found))
    pynvml.nvmlDeviceGetGpuInstances(card, info.id, found, ctypes.byref(count))
    for whole in found[: count.value]:
        here = pynvml.nvmlGpuInstanceGetInfo(whole).placement.start == start
        if here and not _compute_instances(whole):
            pynvml.nvmlGpuInstanceDestroy(whole)


def _fill(whole: object, slices: int) -> None:
    """Give all of a GPU instance to one compute instance."""
    for info in _compute_profiles(whole):
        if info.sliceCount == slices:
            pynvml.nvmlGpuInstanceCreateComputeInstance(whole, info.id)
            return
    raise HardwareError(f"no compute instance fills a partition of {slices} slices")


def _remove(whole: object) -> None:
    for inside in _compute_instances(whole):
        pynvml.nvmlComputeInstanceDestroy(inside)
    pynvml.nvmlGpuInstanceDestroy(whole)


def _compute_instances(whole: object) -> list[object]:
    return [one for info in _compute_profiles(whole) for one in _of_profile(whole, info)]


def _of_profile(whole: object, info: pynvml.c_nvmlComputeInstanceProfileInfo_v2_t) -> list[object]:
    found = (pynvml.c_nvmlComputeInstance_t * max(info.instanceCount, 1))()
    count = ctypes.c_uint(len(found))
    pynvml.nvmlGpuInstanceGetComputeInstances(whole, info.id, found, ctypes.byref(count))
    return list(found[: count.value])


def _compute_profiles(whole: object) -> list[pynvml.c_nvmlComputeInstanceProfileInfo_v2_t]:
    ask = pynvml.nvmlGpuInstanceGetComputeInstanceProfileInfo
    numbers = range(pynvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT)
    shared = pynvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED
    found = (optional(ask, whole, number, shared) for number in numbers)
    return [info for info in found if info is not None]
