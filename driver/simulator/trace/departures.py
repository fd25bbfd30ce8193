"""The same tasks where each leaves after as long as it really ran.

Tasks arrive evenly, at the pace at which those that would still run when the last one comes ask for
exactly all cards (or as much as they can). Since nobody waits here, a task that finds no place is
gone.
"""

import heapq
from collections.abc import Sequence

import msgspec

from driver.simulator.trace.fleet import Fleet, Place
from driver.simulator.trace.play import Decide
from driver.simulator.trace.tasks import Ask, Machine, Task, capacity

# After so many, seconds are exact to less than a thousandth.
_HALVINGS = 40


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy made of tasks that leave.

    `served` is the mean percentage of what is asked for at a time that is allocated (at most all
    cards can be), over the arrivals of the second half; `interval` the seconds between two tasks.
    """

    served: float
    tasks: int
    failed: int
    interval: float


class _Crowd:
    """The tasks that are there, or would be if they had found a place."""

    def __init__(self, machines: Sequence[Machine]) -> None:
        self.fleet = Fleet(machines)
        self.asked = self.allocated = self.failed = 0
        self._leaving: list[tuple[float, int, Ask, Place | None]] = []

    def come(self, ask: Ask, place: Place | None, *, number: int, until: float) -> None:
        """A task has come."""
        heapq.heappush(self._leaving, (until, number, ask, place))
        self.asked += ask.demand
        if place is None:
            self.failed += 1
        else:
            self.fleet.take(place, ask)
            self.allocated += ask.demand

    def leave(self, now: float) -> None:
        """Those whose time is over are gone."""
        while self._leaving and self._leaving[0][0] <= now:
            _, _, ask, place = heapq.heappop(self._leaving)
            self.asked -= ask.demand
            if place is not None:
                self.fleet.leave(place, ask)
                self.allocated -= ask.demand


def play_leaving(tasks: Sequence[Task], machines: Sequence[Machine], decide: Decide) -> Served:
    """Play the tasks in their order."""
    crowd, total = _Crowd(machines), capacity(machines)
    interval = _interval(tasks, total)
    shares: list[float] = []
    for number, task in enumerate(tasks):
        now = number * interval
        crowd.leave(now)
        place = decide(crowd.fleet, task.ask)
        crowd.come(task.ask, place, number=number, until=now + task.seconds)
        if crowd.asked:
            shares.append(100 * crowd.allocated / min(crowd.asked, total))
    late = shares[len(shares) // 2 :]
    served = sum(late) / len(late) if late else 100.0
    return Served(served=served, tasks=len(tasks), failed=crowd.failed, interval=interval)


def _interval(tasks: Sequence[Task], total: int) -> float:
    """Seconds between two tasks, found by halving what is possible."""
    low, high = 0.0, float(max((task.seconds for task in tasks), default=0))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _asked_at_the_end(tasks, middle) > total else (low, middle)
    return high


def _asked_at_the_end(tasks: Sequence[Task], interval: float) -> int:
    last = len(tasks) - 1
    return sum(
        task.ask.demand
        for number, task in enumerate(tasks)
        if task.seconds > (last - number) * interval
    )
