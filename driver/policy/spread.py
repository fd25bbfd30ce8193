"""spread: take the emptiest device and node; several devices apart from each other."""

from collections import Counter

from driver.model.allocation import Score, Term
from driver.policy import fullness
from driver.policy.nodeuse import node_use
from driver.policy.view import Choice, Domains, NodeView
from driver.policy.weights import Weights

# Together below one percent, so that they decide only between devices that are equally empty.
_GROUP, _ROOT, _NUMA = 0.6, 0.25, 0.1


class SpreadDevices:
    """The GPU axis: the emptiest device; several over NVLink groups, PCIe roots, NUMA nodes.

    Score = mean percent that the chosen devices are empty with the choice
    + 0.6, 0.25 and 0.1 times how idle their NVLink groups, PCIe roots and NUMA nodes are with it.
    """

    def __init__(self, weights: Weights | None = None) -> None:
        self._weights = weights

    def score(self, view: NodeView, choice: Choice) -> Score:
        """How well the choice keeps out of the way of others and of itself."""
        full = fullness.after(view, choice, self._weights)
        taken = choice.taken
        empty = sum(100 - round(100 * full[one.index]) for one in taken)
        opened = Counter(index for index in full if view.devices[index].free)
        return Score(
            (
                Term("emptiness of the chosen devices", empty / len(taken) if taken else 0.0),
                Term("idle NVLink groups", _GROUP * _idle(view.nvlink_groups, full, opened)),
                Term("idle PCIe roots", _ROOT * _idle(view.pcie_roots, full, opened)),
                Term("idle NUMA nodes", _NUMA * _idle(view.numa_nodes, full, opened)),
            )
        )


class SpreadNodes:
    """The node axis: the emptiest node that fits, with the request included.

    Score = a third each of the percentages of devices, of slots and of capacity not in use.
    """

    def __init__(self, weights: Weights | None = None) -> None:
        self._weights = weights

    def score(self, view: NodeView, choice: Choice) -> Score:
        """How empty the node is with the choice."""
        use = node_use(view, choice, self._weights)
        return Score(
            tuple(Term(f"{name} not in use", (1 - share) * 100 / 3) for name, share in use.items())
        )


def _idle(domains: Domains, full: dict[int, float], opened: Counter[int]) -> float:
    """The mean share of free devices, with the choice, of the domains that it is in."""
    if not full:
        return 0.0
    taken = Counter(domains.of[index] for index in opened)
    return sum(
        (domains.free[domain] - taken[domain]) / domains.size[domain]
        for domain in (domains.of[index] for index in full)
    ) / len(full)
