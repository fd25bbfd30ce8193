"""The NVLinks of one card, and the fabric that it is part of, as NVML tells them."""

import uuid
from ctypes import byref

import pynvml

from driver.node import sysfs
from driver.node.nvidia.library import Questions, text
from driver.node.nvidia.nvlink import SWITCH, Links

_NO_CLUSTER = bytes(pynvml.NVML_GPU_FABRIC_UUID_LEN)


def read(ask: Questions, address: str | None) -> Links:
    """What the card at this PCI address has of NVLink."""
    numbers = range(pynvml.NVML_NVLINK_MAX_LINKS)
    ends = frozenset(end for link in numbers if (end := _end(ask, link)) is not None)
    fabric = ask.perhaps(_fabric)
    if fabric is None:
        return Links(address=address, ends=ends)
    if not _joined(fabric):
        # The links into the switches are up, but the fabric manager has not connected them (yet).
        return Links(address=address, ends=ends - {SWITCH})
    return Links(address=address, ends=ends, clique=_clique(fabric))


def _end(ask: Questions, link: int) -> str | None:
    if ask.perhaps(pynvml.nvmlDeviceGetNvLinkState, link) != pynvml.NVML_FEATURE_ENABLED:
        return None
    kind = ask.perhaps(pynvml.nvmlDeviceGetNvLinkRemoteDeviceType, link)
    if kind == pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH:
        return SWITCH
    remote = ask.perhaps(pynvml.nvmlDeviceGetNvLinkRemotePciInfo, link)
    return None if remote is None else sysfs.pci_address(text(remote.busId))


def _fabric(handle: object) -> pynvml.c_nvmlGpuFabricInfoV_t:
    """What the card knows of a fabric; raises an `NVMLError` where it knows of none."""
    info = pynvml.c_nvmlGpuFabricInfoV_t()
    pynvml.nvmlDeviceGetGpuFabricInfoV(handle, byref(info))
    if info.state == pynvml.NVML_GPU_FABRIC_STATE_NOT_SUPPORTED:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    return info


def _joined(fabric: pynvml.c_nvmlGpuFabricInfoV_t) -> bool:
    is_complete: bool = fabric.state == pynvml.NVML_GPU_FABRIC_STATE_COMPLETED
    return is_complete and fabric.status == pynvml.NVML_SUCCESS


def _clique(fabric: pynvml.c_nvmlGpuFabricInfoV_t) -> str | None:
    cluster = bytes(fabric.clusterUuid)
    # A fabric of one machine has no cluster: its switches say enough.
    return None if cluster == _NO_CLUSTER else f"{uuid.UUID(bytes=cluster)}.{fabric.cliqueId}"
