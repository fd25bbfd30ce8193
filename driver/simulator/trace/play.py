"""Plays tasks against machines and measures what comes of it.

The measures are those of the source (`driver.simulator.trace.tasks`): what part of all cards is
allocated while tasks worth about 95, 100 and 130 % of them have arrived.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from driver.simulator.trace.fleet import Fleet, Place
from driver.simulator.trace.measure import Measure
from driver.simulator.trace.tasks import Ask, Machine, Task, capacity

# Finds a place for a task.
Decide = Callable[[Fleet, Ask], Place | None]
# Gives a time in seconds, of which only differences count.
Clock = Callable[[], float]

_POINTS = (95, 100, 130)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy made of the tasks.

    `a95`, `a100`, `a130` are percentages of all cards, and so is `fragmentation`, as it is when
    tasks worth all cards have arrived; None where so many did not arrive. `decisions` are seconds.
    """

    a95: float | None
    a100: float | None
    a130: float | None
    tasks: int
    failed: int
    fragmentation: float | None
    decisions: tuple[float, ...]


class Decisions:
    """Takes the time of each decision."""

    def __init__(self, decide: Decide, clock: Clock) -> None:
        self._decide = decide
        self._clock = clock
        self.seconds: list[float] = []

    def __call__(self, fleet: Fleet, ask: Ask) -> Place | None:
        """Decide."""
        began = self._clock()
        place = self._decide(fleet, ask)
        self.seconds.append(self._clock() - began)
        return place


def play(
    tasks: Iterable[Task],
    machines: Sequence[Machine],
    decide: Decisions,
    measure: Measure,
) -> Outcome:
    """Place the tasks one after the other; none leaves, and what finds no place is gone."""
    fleet, total = Fleet(machines), capacity(machines)
    arrived = allocated = failed = count = 0
    fragmentation: float | None = None
    sums = dict.fromkeys(_POINTS, (0, 0))
    for task in tasks:
        count += 1
        arrived += task.ask.demand
        place = decide(fleet, task.ask)
        if place is None:
            failed += 1
        else:
            fleet.take(place, task.ask)
            allocated += task.ask.demand
        point = round(100 * arrived / total)
        if point in sums:
            events, summed = sums[point]
            sums[point] = events + 1, summed + allocated
        if fragmentation is None and arrived >= total:
            fragmentation = 100 * measure.of(fleet.states()) / total
    means = [100 * summed / events / total if events else None for events, summed in sums.values()]
    return Outcome(
        a95=means[0],
        a100=means[1],
        a130=means[2],
        tasks=count,
        failed=failed,
        fragmentation=fragmentation,
        decisions=tuple(decide.seconds),
    )
