"""The cards of this machine, read through NVIDIA's management library.

The only module that imports `pynvml`; it comes with the extra `nvml`, and the library itself with
the GPU driver of the host.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pynvml

from driver.node import nvlink, sysfs
from driver.node.card import Card
from driver.node.errors import InventoryError

T = TypeVar("T")

_BRANDS = {
    pynvml.NVML_BRAND_TESLA: "Tesla",
    pynvml.NVML_BRAND_QUADRO: "Quadro",
    pynvml.NVML_BRAND_GEFORCE: "GeForce",
    pynvml.NVML_BRAND_TITAN: "Titan",
    pynvml.NVML_BRAND_NVIDIA: "Nvidia",
    pynvml.NVML_BRAND_NVIDIA_RTX: "NvidiaRTX",
    pynvml.NVML_BRAND_QUADRO_RTX: "QuadroRTX",
}
_ARCHITECTURES = {
    pynvml.NVML_DEVICE_ARCH_MAXWELL: "Maxwell",
    pynvml.NVML_DEVICE_ARCH_PASCAL: "Pascal",
    pynvml.NVML_DEVICE_ARCH_VOLTA: "Volta",
    pynvml.NVML_DEVICE_ARCH_TURING: "Turing",
    pynvml.NVML_DEVICE_ARCH_AMPERE: "Ampere",
    pynvml.NVML_DEVICE_ARCH_ADA: "Ada Lovelace",
    pynvml.NVML_DEVICE_ARCH_HOPPER: "Hopper",
    pynvml.NVML_DEVICE_ARCH_BLACKWELL: "Blackwell",
}
# How NVML says that a card has no such thing, or that the driver is too old to know of it.
_ABSENT = (
    pynvml.NVMLError_NotSupported,
    pynvml.NVMLError_InvalidArgument,
    pynvml.NVMLError_FunctionNotFound,
)


class NvmlInventory:
    """The inventory port over NVML. The library is open only while the cards are read."""

    def cards(self) -> tuple[Card, ...]:
        """All cards that NVML knows."""
        with _library():
            driver = _text(pynvml.nvmlSystemGetDriverVersion())
            cuda = _cuda_version(pynvml.nvmlSystemGetCudaDriverVersion_v2())
            handles = [
                pynvml.nvmlDeviceGetHandleByIndex(index)
                for index in range(pynvml.nvmlDeviceGetCount())
            ]
            groups = _nvlink_groups(handles)
            return tuple(
                _card(handle, index, (driver, cuda), groups.get(index))
                for index, handle in enumerate(handles)
            )


@contextmanager
def _library() -> Iterator[None]:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise InventoryError(
            f"NVML cannot be used: {error}; install the NVIDIA driver on this host and give the "
            "plugin its libnvidia-ml.so.1, or simulate cards"
        ) from error
    try:
        yield
    except pynvml.NVMLError as error:
        raise InventoryError(f"NVML stopped answering while cards were read: {error}") from error
    finally:
        pynvml.nvmlShutdown()


def _optional(read: Callable[..., T], *arguments: object) -> T | None:
    try:
        return read(*arguments)
    except _ABSENT:
        return None


def _card(handle: object, index: int, versions: tuple[str, str], group: str | None) -> Card:
    address = _address(handle)
    capability = _optional(pynvml.nvmlDeviceGetCudaComputeCapability, handle)
    return Card(
        index=index,
        uuid=_text(pynvml.nvmlDeviceGetUUID(handle)),
        product_name=_text(pynvml.nvmlDeviceGetName(handle)),
        brand=_BRANDS.get(_optional(pynvml.nvmlDeviceGetBrand, handle)),
        architecture=_ARCHITECTURES.get(_optional(pynvml.nvmlDeviceGetArchitecture, handle)),
        memory=pynvml.nvmlDeviceGetMemoryInfo(handle).total,
        cuda_compute_capability=None if capability is None else "{}.{}".format(*capability),
        driver_version=versions[0],
        cuda_driver_version=versions[1],
        pci_bus_id=address,
        pcie_root=sysfs.pcie_root(address) if address else None,
        numa_node=sysfs.numa_node(address) if address else None,
        nvlink_group=group,
    )


def _nvlink_groups(handles: list[object]) -> dict[int, str]:
    addresses = {index: _address(handle) for index, handle in enumerate(handles)}
    ends = {index: _ends(handle) for index, handle in enumerate(handles)}
    return nvlink.groups(ends, {index: text for index, text in addresses.items() if text})


def _ends(handle: object) -> frozenset[str]:
    links = range(pynvml.NVML_NVLINK_MAX_LINKS)
    return frozenset(end for link in links if (end := _end(handle, link)) is not None)


def _end(handle: object, link: int) -> str | None:
    if _optional(pynvml.nvmlDeviceGetNvLinkState, handle, link) != pynvml.NVML_FEATURE_ENABLED:
        return None
    kind = _optional(pynvml.nvmlDeviceGetNvLinkRemoteDeviceType, handle, link)
    if kind == pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH:
        return nvlink.SWITCH
    remote = _optional(pynvml.nvmlDeviceGetNvLinkRemotePciInfo, handle, link)
    return None if remote is None else sysfs.pci_address(_text(remote.busId))


def _address(handle: object) -> str | None:
    return sysfs.pci_address(_text(pynvml.nvmlDeviceGetPciInfo(handle).busId))


def _cuda_version(number: int) -> str:
    # 13000 stands for 13.0, 12080 for 12.8.
    return f"{number // 1000}.{number % 1000 // 10}"


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
