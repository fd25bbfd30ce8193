"""What Linux and the kernel driver know of NVIDIA cards without asking them: enough for a lost one.

A card that has fallen off the bus is often still listed, with the name and UUID that it once told.
"""

import re
from pathlib import Path

from driver.node import sysfs
from driver.node.card import Card

_VENDOR = "0x10de"
# The first digits of a display controller's class.
_DISPLAY = "0x03"
_FACT = re.compile(r"^(Model|GPU UUID):\s*(\S.*?)\s*$", re.MULTILINE)
# What a UUID has for digits that it never told.
_UNTOLD = "?"


def cards(sys: Path) -> tuple[str, ...]:
    """The PCI addresses of all NVIDIA cards, in order."""
    devices = sorted((sys / "bus" / "pci" / "devices").glob("*"))
    return tuple(path.name for path in devices if _is_card(path))


def card(index: int, address: str, *, sys: Path, proc: Path) -> Card:
    """What is known of the card at an address."""
    facts = dict(_FACT.findall(_read(proc / address / "information")))
    uuid = facts.get("GPU UUID", "")
    return Card(
        index=index,
        uuid="" if _UNTOLD in uuid else uuid,
        product_name=facts.get("Model", ""),
        pci_bus_id=address,
        pcie_root=sysfs.pcie_root(address, sys),
        pcie_switch=sysfs.pcie_switch(address, sys),
        numa_node=sysfs.numa_node(address, sys),
    )


def _is_card(path: Path) -> bool:
    return _read(path / "vendor") == _VENDOR and _read(path / "class").startswith(_DISPLAY)


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
