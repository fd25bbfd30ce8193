"""What would be left over of a node if the usual requests went on coming.

A fixed set of sequences of requests is played on it: each request that fits takes the fullest
devices that hold it, the others pass. What no request of a sequence found a use for is left over.
In contrast to `fragmentation_loss`, which asks of each request alone, this sees that CPU runs out
before devices do, and which sizes fill a device together.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from itertools import accumulate

from driver.policy.fragmentation_wants import UNBOUNDED, Room, Want

_SEQUENCES = 12
_LENGTH = 40
_SEED = 1
# Free CPU is rounded down to whole ones: finer differences are of no account so far ahead.
_CPU_STEP = 1000
# Most rooms never come again.
MOST_ROOMS = 100_000

# CPU, count and thousandths of a device: all that matters of a request here.
_Step = tuple[int, int, int]


class Ahead:
    """Looks ahead on nodes with devices of one make."""

    def __init__(self, wants: Sequence[Want]) -> None:
        self._sequences = tuple(_sequences(wants))
        steps = [step for sequence in self._sequences for step in sequence if step[1]]
        self._least_cpu = min((step[0] for step in steps), default=UNBOUNDED)
        self._least_milli = min((step[2] for step in steps), default=UNBOUNDED)
        self._known: dict[Room, float] = {}

    def left_over(self, room: Room) -> float:
        """The mean over the sequences, in thousandths of a device."""
        rounded = room._replace(cpu=room.cpu - room.cpu % _CPU_STEP)
        known = self._known.get(rounded)
        if known is None:
            if len(self._known) >= MOST_ROOMS:
                self._known.clear()
            known = self._known[rounded] = self._mean(rounded)
        return known

    def _mean(self, room: Room) -> float:
        if self._exhausted(room.cpu, room.free):
            return float(sum(room.free))
        left = sum(
            [self._play(sequence, room.cpu, list(room.free)) for sequence in self._sequences]
        )
        return left / len(self._sequences)

    def _exhausted(self, cpu: int, free: Sequence[int]) -> bool:
        return not free or cpu < self._least_cpu or free[-1] < self._least_milli

    def _play(self, sequence: tuple[_Step, ...], cpu: int, free: list[int]) -> int:
        least_cpu, least_milli = self._least_cpu, self._least_milli
        for need, count, milli in sequence:
            if need > cpu:
                continue
            if count:
                place = bisect_left(free, milli)
                if len(free) - place < count:
                    continue
                _take(free, place, count, milli)
                if not free or free[-1] < least_milli:
                    break
            cpu -= need
            if cpu < least_cpu:
                break
        return sum(free)


def _take(free: list[int], place: int, count: int, milli: int) -> None:
    """Take so much of each of so many devices from this place on; what is full is gone."""
    if count == 1:
        # Nearly always, and much quicker so.
        rest = free.pop(place) - milli
        if rest:
            insort(free, rest)
        return
    rests = [rest - milli for rest in free[place : place + count] if rest > milli]
    del free[place : place + count]
    for rest in rests:
        insort(free, rest)


def _sequences(wants: Sequence[Want]) -> Iterator[tuple[_Step, ...]]:
    """Requests as often as they come; those that this make cannot serve are left out.

    At each place the sequences have requests from all parts of the mix, so that few sequences
    stand for many; which sequence has which is drawn.
    """
    bounds = list(accumulate(want.number for want in wants))
    draws = _draws()
    columns = [_column(draws) for _ in range(_LENGTH)]
    for row in range(_SEQUENCES if bounds else 0):
        drawn = (wants[min(bisect_left(bounds, column[row]), len(wants) - 1)] for column in columns)
        yield tuple((want.cpu, want.devices, want.milli) for want in drawn if want.runs)


def _column(draws: Iterator[float]) -> list[float]:
    """A number from each of as many equal parts of 0 to 1 as there are sequences, in any order."""
    column = [(part + next(draws)) / _SEQUENCES for part in range(_SEQUENCES)]
    for last in range(_SEQUENCES - 1, 0, -1):
        other = int(next(draws) * (last + 1))
        column[last], column[other] = column[other], column[last]
    return column


def _draws() -> Iterator[float]:
    """Always the same numbers from 0 to 1, by a linear congruential generator (Knuth's MMIX)."""
    state = _SEED
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield (state >> 32) / 2**32
