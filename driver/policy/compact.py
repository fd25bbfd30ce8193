"""compact: fill what is in use already, keep whole devices, whole NVLink groups and nodes free."""

from driver.model.allocation import Score, Term
from driver.policy import fullness
from driver.policy.nodeuse import node_use
from driver.policy.view import Choice, NodeView
from driver.policy.weights import Weights

# The lesser terms decide only between choices of the same fullness, which counts in hundredths of a
# percent: 9 split groups stay below one hundredth, 9 broken ones below one split, and so on.
_SPLIT, _BROKEN, _LEFT = -0.001, -0.0001, -0.000001


class CompactDevices:
    """The GPU axis: the fullest device; whole devices from one group, the one with least to lose.

    Score = mean percent that the chosen devices are full with the choice
    - 0.001 for each NVLink group beyond the first from which free devices are taken, where a group
      has more than one device at all
    - 0.0001 for each group that was all free and is so no longer, unless it is taken whole
    - 0.000001 for each free device left in the groups that free devices are taken from.
    """

    def __init__(self, weights: Weights | None = None) -> None:
        self._weights = weights

    def score(self, view: NodeView, choice: Choice) -> Score:
        """How well the choice keeps whole devices and groups free."""
        full = fullness.of_cards(view, choice, self._weights)
        groups = view.nvlink_groups
        opened: dict[int, int] = {}
        for index in full:
            if view.devices[index].free:
                group = groups.of[index]
                opened[group] = opened.get(group, 0) + 1
        # Without links there are no groups to split: each device would be one.
        linked = len(groups.size) < len(groups.of)
        split = len(opened) - 1 if linked and opened else 0
        broken = left = 0
        for group, count in opened.items():
            free = groups.free[group]
            broken += free == groups.size[group] > count
            left += free - count
        return Score(
            (
                Term("fullness of the chosen devices", _mean_percent(full, choice)),
                Term("NVLink groups split", _SPLIT * split),
                Term("whole NVLink groups broken", _BROKEN * broken),
                Term("free devices left in the group", _LEFT * left),
            )
        )


class CompactNodes:
    """The node axis: the fullest node that fits, with the request included.

    Score = a third each of the percentages of devices in use, of slots and of capacity.
    """

    def __init__(self, weights: Weights | None = None) -> None:
        self._weights = weights

    def score(self, view: NodeView, choice: Choice) -> Score:
        """How full the node is with the choice."""
        use = node_use(view, choice, self._weights)
        return Score(tuple(Term(f"{name} in use", share * 100 / 3) for name, share in use.items()))


def _mean_percent(full: dict[int, float], choice: Choice) -> float:
    taken = choice.taken
    if not taken:
        return 0.0
    return sum(fullness.percent(full[one.index]) for one in taken) / len(taken)
