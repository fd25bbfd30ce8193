"""How two cards of a node reach each other, in the letters of `nvidia-smi topo -m`.

Only what the attributes of a device tell: the number of NVLinks and switches on the way are not
published, so that NV has no number, and PIX and PXB are part of PHB.
"""

from collections.abc import Sequence

from driver.allocator.device import Links

SELF, NVLINK, ROOT, NUMA, SYSTEM, UNKNOWN = "X", "NV", "PHB", "NODE", "SYS", "?"
MEANING = {
    SELF: "the card itself",
    NVLINK: "connected by NVLink, directly or through switches",
    ROOT: "through the same PCIe root",
    NUMA: "through host bridges of one NUMA node",
    SYSTEM: "between NUMA nodes",
    UNKNOWN: "the cards do not publish it",
}
_WORST_LAST = (SELF, NVLINK, ROOT, NUMA, SYSTEM, UNKNOWN)


def link(one: Links, other: Links) -> str:
    """The best connection of two different cards."""
    if one.nvlink_group and one.nvlink_group == other.nvlink_group:
        return NVLINK
    if one.pcie_root and one.pcie_root == other.pcie_root:
        return ROOT
    if one.numa_node is None or other.numa_node is None:
        return UNKNOWN
    return NUMA if one.numa_node == other.numa_node else SYSTEM


def worst(cards: Sequence[Links]) -> str:
    """The worst connection among several cards; empty for fewer than two."""
    pairs = (link(one, other) for place, one in enumerate(cards) for other in cards[place + 1 :])
    return max(pairs, key=_WORST_LAST.index, default="")
