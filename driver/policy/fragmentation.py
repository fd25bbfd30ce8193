"""fragmentation: the choice that least raises what the usual requests cannot use.

Source: fragmentation gradient descent, "Beware of Fragmentation", USENIX ATC 2023. Free capacity of
a node is unusable for a request when the node cannot run the request at all, or where a device has
less left than the request takes of one.
"""

from collections.abc import Sequence

from driver.model.allocation import Score, Term
from driver.policy import fullness
from driver.policy.mix import UNKNOWN, Mix, Shape
from driver.policy.view import Choice, NodeView

# Differences below a twenty-fifth of a device count as none: on the published trace, exact values
# place worse, because noise then decides instead of the order of the devices.
_STEP = 0.04
_EPSILON = 1e-9


class Fragmentation:
    """Both axes. Score = minus the devices' worth of capacity that becomes unusable, in percent."""

    def __init__(self, mix: Mix | None = None) -> None:
        self._mix = mix or UNKNOWN
        self._last: tuple[NodeView, float] | None = None

    def score(self, view: NodeView, choice: Choice) -> Score:
        """How little more of the node the usual requests cannot use."""
        left = [1 - fullness.before(device) for device in view.devices]
        before = self._before(view, left)
        for index, full in fullness.after(view, choice).items():
            left[index] = 1 - full
        raised = unusable(view, left, self._mix) - before
        return Score(
            (Term("capacity made unusable", -100 * _STEP * round(raised / _STEP)),),
        )

    def _before(self, view: NodeView, left: Sequence[float]) -> float:
        # All choices of a decision are on one view; only the identity of it is relied on.
        if self._last is None or self._last[0] is not view:
            self._last = view, unusable(view, left, self._mix)
        return self._last[1]


def unusable(view: NodeView, left: Sequence[float], mix: Mix) -> float:
    """The expected unusable capacity of a node, in devices.

    `left` is how much of each device is free, 0 to 1.
    """
    weight = sum(shape.weight for shape in mix.shapes)
    expected = sum(shape.weight * _unusable_for(view, left, shape) for shape in mix.shapes)
    return expected / weight if weight else 0.0


def _unusable_for(view: NodeView, left: Sequence[float], shape: Shape) -> float:
    total = sum(left)
    if not shape.count:
        return total
    usable, places = 0.0, 0
    for device, free in zip(view.devices, left, strict=True):
        share = shape.share_of(device)
        if share is not None and share <= free + _EPSILON:
            usable += free
            places += 1
    return total - usable if places >= shape.count else total
