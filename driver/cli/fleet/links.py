"""How two cards of a node reach each other, in the letters of `nvidia-smi topo -m`.

Only what the attributes of a device tell: the number of NVLinks and switches on the way are not
published, so that NV has no number, and PXB is part of PHB.
"""

from collections.abc import Sequence

import msgspec

from driver.model import names
from driver.model.resourceslice import Device

SELF, NVLINK, SWITCH, ROOT, NUMA, SYSTEM, UNKNOWN = "X", "NV", "PIX", "PHB", "NODE", "SYS", "?"
MEANING = {
    SELF: "the card itself",
    NVLINK: "connected by NVLink, directly or through switches",
    SWITCH: "through the same PCIe switch",
    ROOT: "through the same PCIe root",
    NUMA: "through host bridges of one NUMA node",
    SYSTEM: "between NUMA nodes",
    UNKNOWN: "the cards do not publish it",
}
_WORST_LAST = (SELF, NVLINK, SWITCH, ROOT, NUMA, SYSTEM, UNKNOWN)


class Site(msgspec.Struct, frozen=True):
    """Where a card is connected; None where it does not say."""

    nvlink_group: str | None
    pcie_switch: str | None
    pcie_root: str | None
    numa_node: int | None


def site(device: Device) -> Site:
    """Where a device says that it is; of a list of NUMA nodes the first (KEP-6072)."""
    group, switch, root, numa = (
        device.attributes.get(name)
        for name in (names.NVLINK_GROUP, names.PCIE_SWITCH, names.PCIE_ROOT, names.NUMA_NODE)
    )
    return Site(
        nvlink_group=None if group is None else group.string,
        pcie_switch=None if switch is None else switch.string,
        pcie_root=None if root is None else root.string or next(iter(root.strings or ()), None),
        numa_node=None if numa is None else _first(numa.int_, numa.ints),
    )


def _first(number: int | None, numbers: Sequence[int] | None) -> int | None:
    return number if number is not None else next(iter(numbers or ()), None)


def link(one: Site, other: Site) -> str:
    """The best connection of two different cards."""
    if one.nvlink_group and one.nvlink_group == other.nvlink_group:
        return NVLINK
    if one.pcie_switch and one.pcie_switch == other.pcie_switch:
        return SWITCH
    if one.pcie_root and one.pcie_root == other.pcie_root:
        return ROOT
    if one.numa_node is None or other.numa_node is None:
        return UNKNOWN
    return NUMA if one.numa_node == other.numa_node else SYSTEM


def worst(cards: Sequence[Site]) -> str:
    """The worst connection among several cards; empty for fewer than two."""
    pairs = (link(one, other) for place, one in enumerate(cards) for other in cards[place + 1 :])
    return max(pairs, key=_WORST_LAST.index, default="")
