"""The cards of this machine as NVIDIA's management library tells them."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pynvml

from driver.node import sysfs
from driver.node.card import Card
from driver.node.health.port import HealthSource
from driver.node.nvidia import links, mig, nvlink, pci
from driver.node.nvidia.events import NvmlHealth
from driver.node.nvidia.library import Questions, opened, text
from driver.node.nvidia.nvlink import Links
from driver.node.settings import NodeSettings

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
    pynvml.NVML_DEVICE_ARCH_RUBIN: "Rubin",
}
_ADDRESSING_MODES = {
    pynvml.NVML_DEVICE_ADDRESSING_MODE_NONE: "None",
    pynvml.NVML_DEVICE_ADDRESSING_MODE_HMM: "HMM",
    pynvml.NVML_DEVICE_ADDRESSING_MODE_ATS: "ATS",
}


class NvmlInventory:
    """The inventory port over NVML. The library is open only while the cards are read.

    A card that does not answer is told with the reason and with what is known of it: from its
    other answers, else from what Linux and the kernel driver know.
    """

    def __init__(
        self, *, sys: Path = Path("/sys"), proc: Path = Path("/proc/driver/nvidia/gpus")
    ) -> None:
        self._sys = sys
        self._proc = proc

    @classmethod
    def of(cls, _settings: NodeSettings) -> "NvmlInventory":
        """The inventory of this machine, whatever the settings say."""
        return cls()

    def cards(self) -> tuple[Card, ...]:
        """All cards that NVML knows."""
        with opened():
            driver = text(pynvml.nvmlSystemGetDriverVersion())
            cuda = _cuda_version(pynvml.nvmlSystemGetCudaDriverVersion_v2())
            read = [self._card(index) for index in range(pynvml.nvmlDeviceGetCount())]
        groups = nvlink.groups({card.index: found for card, found in read})
        seen = {card.pci_bus_id for card, _ in read}
        # NVML counts in the order of the addresses.
        strays = iter([address for address in pci.cards(self._sys) if address not in seen])
        return tuple(
            msgspec.structs.replace(
                self._located(card, strays),
                driver_version=driver,
                cuda_driver_version=cuda,
                nvlink_group=groups.get(card.index),
            )
            for card, _ in read
        )

    def health(self, cards: tuple[Card, ...]) -> HealthSource:
        """As `WatchedInventory.health`."""
        return NvmlHealth(cards)

    def _card(self, index: int) -> tuple[Card, Links]:
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        except pynvml.NVMLError as error:
            return Card(index=index, lost=f"nvmlDeviceGetHandleByIndex: {error}"), Links()
        ask = Questions(handle)
        where = ask(pynvml.nvmlDeviceGetPciInfo)
        address = sysfs.pci_address(text(where.busId)) if where else None
        found = links.read(ask, address)
        card = self._asked(ask, index, address)
        return msgspec.structs.replace(card, lost=ask.failed), found

    def _asked(self, ask: Questions, index: int, address: str | None) -> Card:
        memory = ask(pynvml.nvmlDeviceGetMemoryInfo)
        capability = ask.perhaps(pynvml.nvmlDeviceGetCudaComputeCapability)
        return Card(
            index=index,
            uuid=text(ask(pynvml.nvmlDeviceGetUUID) or ""),
            product_name=text(ask(pynvml.nvmlDeviceGetName) or ""),
            brand=_BRANDS.get(ask.perhaps(pynvml.nvmlDeviceGetBrand)),
            architecture=_ARCHITECTURES.get(ask.perhaps(pynvml.nvmlDeviceGetArchitecture)),
            memory=memory.total if memory else 0,
            cuda_compute_capability="{}.{}".format(*capability) if capability else None,
            pci_bus_id=address,
            pcie_root=sysfs.pcie_root(address, self._sys) if address else None,
            pcie_switch=sysfs.pcie_switch(address, self._sys) if address else None,
            numa_node=sysfs.numa_node(address, self._sys) if address else None,
            addressing_mode=_ADDRESSING_MODES.get(ask.perhaps(pynvml.nvmlDeviceGetAddressingMode)),
            module_id=ask.perhaps(pynvml.nvmlDeviceGetModuleId),
            mig=mig.read(ask),
        )

    def _located(self, card: Card, strays: Iterator[str]) -> Card:
        """The card, from its address where it told nothing; `strays` are addresses of no other."""
        address = next(strays, None) if card.pci_bus_id is None else None
        if address is None:
            return card
        known = pci.card(card.index, address, sys=self._sys, proc=self._proc)
        return msgspec.structs.replace(known, lost=card.lost)


def _cuda_version(number: int) -> str:
    # 13000 stands for 13.0, 12080 for 12.8.
    return f"{number // 1000}.{number % 1000 // 10}"
