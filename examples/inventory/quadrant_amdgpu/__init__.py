"""AMD cards as Linux describes them: an inventory for Quadrant without any library of the vendor.

Everything is in `/sys`: `class/drm` names the cards that a driver serves, the PCI device behind
each has what is published.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from driver.node import sysfs
from driver.node.card import Card
from driver.node.errors import InventoryError
from driver.node.settings import NodeSettings

_DRIVER = "amdgpu"
_CARD = re.compile(r"card\d+")
# Every user of the cards' compute units opens it.
_COMPUTE = "/dev/kfd"
_NODES = "/dev/dri"


class AmdCards:
    """The inventory port (`driver.node.card.Inventory`)."""

    def __init__(self, sys: Path = Path("/sys")) -> None:
        self._sys = sys

    @classmethod
    def of(cls, _settings: NodeSettings) -> "AmdCards":
        """What the entry point names: takes the plugin's settings, returns the inventory."""
        return cls()

    def cards(self) -> tuple[Card, ...]:
        """All cards of this machine, numbered in the order of their PCI addresses."""
        try:
            found = sorted(self._devices())
        except OSError as error:
            raise InventoryError(
                f"{self._sys / 'class/drm'} cannot be read: {error}; is a driver of "
                "graphics cards loaded, and /sys mounted?"
            ) from error
        return tuple(self._card(index, *one) for index, one in enumerate(found))

    def _devices(self) -> Iterator[tuple[str, str]]:
        """PCI address and name of every card that the driver serves."""
        for entry in (self._sys / "class" / "drm").iterdir():
            device = (entry / "device").resolve()
            if _CARD.fullmatch(entry.name) and (device / "driver").resolve().name == _DRIVER:
                yield device.name, entry.name

    def _card(self, index: int, address: str, name: str) -> Card:
        device = self._sys / "bus" / "pci" / "devices" / address
        memory = _text(device / "mem_info_vram_total")
        serial = _text(device / "unique_id")
        return Card(
            index=index,
            # What is not known is left empty: it is then not published, and nobody is misled.
            uuid=f"GPU-{serial}" if serial else "",
            product_name=_text(device / "product_name") or f"AMD {_text(device / 'device')}",
            brand="AMD",
            memory=int(memory) if memory.isdigit() else 0,
            driver_version=_text(self._sys / "module" / _DRIVER / "version") or None,
            pci_bus_id=address,
            pcie_root=sysfs.pcie_root(address, self._sys),
            numa_node=sysfs.numa_node(address, self._sys),
            # Cards of one hive reach each other over Infinity Fabric, as others do over NVLink.
            nvlink_group=_text(device / "xgmi_hive_info" / "xgmi_hive_id") or None,
            device_nodes=(_COMPUTE, *_nodes(device, name)),
            # A card that does not answer is published with a taint, not left out.
            lost=None if memory.isdigit() else "mem_info_vram_total cannot be read",
        )


def _nodes(device: Path, name: str) -> tuple[str, ...]:
    renderers = sorted(path.name for path in (device / "drm").glob("renderD*"))
    return tuple(f"{_NODES}/{one}" for one in (name, *renderers))


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
