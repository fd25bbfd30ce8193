"""What one evaluation carries with it: the device, what it has cost, the variables' values."""

from collections.abc import Callable
from typing import NamedTuple

from driver.selector.cost import LIMIT, limit_exceeded
from driver.selector.device import SelectorDevice


class Frame:
    """One evaluation of one program on one device."""

    __slots__ = ("cost", "device", "limit", "slots")

    def __init__(self, device: SelectorDevice, variables: int, limit: int = LIMIT) -> None:
        self.device = device
        self.cost = 0
        self.limit = limit
        self.slots: list[object] = [None] * variables

    def charge(self, amount: int) -> None:
        """Add to the cost; ends the evaluation beyond the limit."""
        self.cost += amount
        if self.cost > self.limit:
            raise limit_exceeded()


Run = Callable[[Frame], object]


class Code(NamedTuple):
    """A compiled node. A constant's value is known; `run` gives it, too."""

    run: Run
    constant: bool = False
    value: object = None


def constant(value: object) -> Code:
    """Code that always gives this value."""
    return Code(lambda _: value, constant=True, value=value)
