"""topology: several devices as close to each other as possible, one alone where it is missed least.

Closeness of two devices, the best that they have: one NVLink group 100, one PCIe switch 70, one
PCIe root 50, one NUMA node 20, one host 10. The order is that of HAMi's link scores; the distances
are ours.
"""

from itertools import combinations

from driver.model.allocation import Score, Term
from driver.policy.view import Choice, NodeView

_NVLINK, _SWITCH, _ROOT, _NUMA, _HOST = 100, 70, 50, 20, 10


class Topology:
    """Both axes: the set with the best links; a single device is the worst-connected one.

    Score = mean closeness of all pairs of chosen devices; for one device, minus the mean closeness
    to the other free devices of the node.
    """

    def score(self, view: NodeView, choice: Choice) -> Score:
        """How close the chosen devices are."""
        chosen = sorted({taken.index for taken in choice.taken})
        if len(chosen) > 1:
            links = [closeness(view, one, other) for one, other in combinations(chosen, 2)]
            return Score((Term("closeness of the chosen devices", sum(links) / len(links)),))
        lost = [
            closeness(view, one, other.index)
            for one in chosen
            for other in view.devices
            if other.free and other.index != one
        ]
        missed = sum(lost) / len(lost) if lost else 0.0
        return Score((Term("closeness to the devices left free", -missed),))


def closeness(view: NodeView, one: int, other: int) -> int:
    """How well two devices of the node are connected."""
    for domains, points in (
        (view.nvlink_groups, _NVLINK),
        (view.pcie_switches, _SWITCH),
        (view.pcie_roots, _ROOT),
        (view.numa_nodes, _NUMA),
    ):
        if domains.of[one] == domains.of[other]:
            return points
    return _HOST
