"""What Linux knows of a PCI device and its vendor's library does not: root, switch, NUMA node."""

import re
from itertools import takewhile
from pathlib import Path

_ADDRESS = re.compile(
    r"(?P<domain>[0-9a-f]{4,8}):(?P<bus>[0-9a-f]{2}):(?P<device>[0-9a-f]{2})\.(?P<function>[0-7])"
)
_ROOT = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")
_DOMAIN_DIGITS = 4
# A card behind a switch has these above it, at the least: the port of the switch that it is plugged
# into, the port with which the switch is plugged in itself, and the root port.
_PORTS_WITH_SWITCH = 3


def pci_address(text: str) -> str | None:
    """A PCI address the way Linux writes it ("0000:1b:00.0"); None when it is none.

    NVML writes "00000000:1B:00.0": eight digits of domain, and capitals.
    """
    match = _ADDRESS.fullmatch(text.strip().lower())
    if match is None:
        return None
    domain = match["domain"].lstrip("0").rjust(_DOMAIN_DIGITS, "0")
    return f"{domain}:{match['bus']}:{match['device']}.{match['function']}"


def pcie_root(address: str, sys: Path = Path("/sys")) -> str | None:
    """The root complex above a device ("pci0000:15"), None when the device is not there."""
    device = sys / "bus" / "pci" / "devices" / address
    if not device.exists():
        return None
    return next((part for part in device.resolve().parts if _ROOT.fullmatch(part)), None)


def pcie_switch(address: str, sys: Path = Path("/sys")) -> str | None:
    """The PCIe switch that a device is plugged into, by the address of the switch's upstream port.

    Of several switches in a row the one next to the device. None where there is no switch between
    it and its root port, and when the device is not there.
    """
    device = sys / "bus" / "pci" / "devices" / address
    if not device.exists():
        return None
    ports = [*takewhile(_ADDRESS.fullmatch, reversed(device.resolve().parts[:-1]))]
    return ports[1] if len(ports) >= _PORTS_WITH_SWITCH else None


def numa_node(address: str, sys: Path = Path("/sys")) -> int | None:
    """The NUMA node of a device, None when Linux does not know it (it then says -1)."""
    try:
        node = int((sys / "bus" / "pci" / "devices" / address / "numa_node").read_text())
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None
