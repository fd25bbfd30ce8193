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


class _Tally:
    """What has come, and what of it is placed."""

    def __init__(self, total: int) -> None:
        self.tasks = self.failed = 0
        self.arrived = self.allocated = 0
        self._total = total
        # Events, and what was allocated at them, all added up.
        self._at = dict.fromkeys(_POINTS, (0, 0))

    def count(self, ask: Ask, place: Place | None) -> None:
        """One more task."""
        self.tasks += 1
        self.arrived += ask.demand
        self.failed += place is None
        self.allocated += ask.demand if place is not None else 0
        point = round(100 * self.arrived / self._total)
        if point in self._at:
            events, allocated = self._at[point]
            self._at[point] = events + 1, allocated + self.allocated

    def mean(self, point: int) -> float | None:
        """Percent of all cards that were allocated at this point of arrival."""
        events, allocated = self._at[point]
        return 100 * allocated / events / self._total if events else None


def play(
    tasks: Iterable[Task], machines: Sequence[Machine], decide: Decisions, measure: Measure
) -> Outcome:
    """Place the tasks one after the other; none leaves, and what finds no place is gone."""
    fleet, total = Fleet(machines), capacity(machines)
    tally, fragmentation = _Tally(total), None
    for task in tasks:
        place = decide(fleet, task.ask)
        if place is not None:
            fleet.take(place, task.ask)
        tally.count(task.ask, place)
        if fragmentation is None and tally.arrived >= total:
            fragmentation = 100 * measure.of(fleet.states()) / total
    a95, a100, a130 = (tally.mean(point) for point in _POINTS)
    return Outcome(
        a95=a95,
        a100=a100,
        a130=a130,
        tasks=tally.tasks,
        failed=tally.failed,
        fragmentation=fragmentation,
        decisions=tuple(decide.seconds),
    )
