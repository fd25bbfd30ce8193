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


def play_leaving(tasks: Sequence[Task], machines: Sequence[Machine], decide: Decide) -> Served:
    """Play the tasks in their order."""
    fleet, total = Fleet(machines), capacity(machines)
    interval = _interval(tasks, total)
    present = allocated = failed = 0
    leaving: list[tuple[float, int, Ask, Place | None]] = []
    shares: list[float] = []
    for number, task in enumerate(tasks):
        now = number * interval
        while leaving and leaving[0][0] <= now:
            _, _, ask, place = heapq.heappop(leaving)
            present -= ask.demand
            if place is not None:
                fleet.leave(place, ask)
                allocated -= ask.demand
        place = decide(fleet, task.ask)
        present += task.ask.demand
        heapq.heappush(leaving, (now + task.seconds, number, task.ask, place))
        if place is None:
            failed += 1
        else:
            fleet.take(place, task.ask)
            allocated += task.ask.demand
        if present:
            shares.append(100 * allocated / min(present, total))
    late = shares[len(shares) // 2 :]
    served = sum(late) / len(late) if late else 100.0
    return Served(served=served, tasks=len(tasks), failed=failed, interval=interval)


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
