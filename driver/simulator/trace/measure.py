"""How much of the cards that are free the commonest requests cannot use.

The measure that results are compared by, whatever policy made them: F_n of the source, summed over
the machines, for the 35 commonest shapes. It counts requests only, not how much they ask for.
"""

from collections.abc import Iterable, Sequence

from driver.policy.fragmentation_loss import Loss
from driver.policy.fragmentation_wants import wants
from driver.simulator.trace.placer import device
from driver.simulator.trace.state import CardUse, State
from driver.simulator.trace.tasks import Task, mix

_COMMONEST = 35


class Measure:
    """Measures machines against the mix of these tasks."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._mix = mix(tasks, commonest=_COMMONEST)
        self._losses: dict[str, Loss] = {}

    def of(self, states: Iterable[tuple[State, int]]) -> float:
        """Thousandths of cards, in all machines; the states come with how many are in them."""
        return sum(
            number * self._of_model(state.machine.model).unusable(state.room())
            for state, number in states
        )

    def _of_model(self, model: str) -> Loss:
        if model not in self._losses:
            counted = wants(self._mix, device(model, 0, CardUse(0, 0)))
            self._losses[model] = Loss(want._replace(weight=want.number) for want in counted)
        return self._losses[model]
