"""spread: take the emptiest device and node; several devices apart from each other."""

from driver.model.allocation import Score, Term
from driver.policy import fullness
from driver.policy.nodeuse import node_use
from driver.policy.view import Choice, Domains, NodeView
from driver.policy.weights import Weights

# Together below a hundredth of a percent, so that they decide only between devices equally
# empty; and being apart comes before being in an idle place.
_APART = (0.004, 0.002, 0.001)
_IDLE = (0.002, 0.0005, 0.0002)


class SpreadDevices:
    """The GPU axis: the emptiest device; several over NVLink groups, PCIe roots, NUMA nodes.

    Score = mean percent that the chosen devices are empty with the choice
    + 0.004, 0.002 and 0.001 times how many NVLink groups, PCIe roots and NUMA nodes they are in,
      from 0 (one) to 1 (one each)
    + 0.002, 0.0005 and 0.0002 times the share of free devices that those are left with.
    """

    def __init__(self, weights: Weights | None = None) -> None:
        self._weights = weights

    def score(self, view: NodeView, choice: Choice) -> Score:
        """How well the choice keeps out of the way of others and of itself."""
        full = fullness.of_cards(view, choice, self._weights)
        empty = sum(100 - fullness.percent(full[one.index]) for one in choice.taken)
        opened = [index for index in full if view.devices[index].free]
        places = (view.nvlink_groups, view.pcie_roots, view.numa_nodes)
        apart = sum(w * _apart(one, full) for w, one in zip(_APART, places, strict=True))
        idle = sum(w * _idle(one, full, opened) for w, one in zip(_IDLE, places, strict=True))
        return Score(
            (
                Term("emptiness of the chosen devices", empty / max(1, len(choice.taken))),
                Term("apart from each other", apart),
                Term("in idle places", idle),
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


def _apart(domains: Domains, full: dict[int, float]) -> float:
    if len(full) < 2:  # noqa: PLR2004 - one device is apart from nothing
        return 0.0
    return (len({domains.of[index] for index in full}) - 1) / (len(full) - 1)


def _idle(domains: Domains, full: dict[int, float], opened: list[int]) -> float:
    """The mean share of free devices, with the choice, of the domains that it is in."""
    if not full:
        return 0.0
    of, size, left = domains.of, domains.size, list(domains.free)
    for index in opened:
        left[of[index]] -= 1
    return sum([left[of[index]] / size[of[index]] for index in full]) / len(full)
