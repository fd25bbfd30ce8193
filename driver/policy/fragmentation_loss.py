"""How much of a node's free capacity the usual requests cannot use.

Source: the measure F_n of fragmentation gradient descent, "Beware of Fragmentation", USENIX ATC
2023.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate

from driver.policy.fragmentation_wants import Room, Want


class Loss:
    """Measures nodes with devices of one make against usual requests."""

    def __init__(self, wants: Iterable[Want]) -> None:
        self._total = 0.0
        by_devices: dict[tuple[int, int], list[tuple[int, float]]] = {}
        for want in wants:
            self._total += want.weight
            if want.devices and want.runs:
                same = by_devices.setdefault((want.devices, want.milli), [])
                same.append((want.cpu, want.weight))
        # Requests for the same devices stand together: their CPU, ascending, and the weight of
        # those that want at most so much.
        self._groups = [
            (count, milli, sorted(cpu for cpu, _ in same), _running(same))
            for (count, milli), same in by_devices.items()
        ]

    def unusable(self, room: Room) -> float:
        """The expected unusable capacity, in thousandths of a device.

        For a request that cannot run there, or needs no device, that is all that is free; else what
        is free on devices that have less left than the request takes of one.
        """
        free = room.free
        above = [0, *accumulate(reversed(free))]
        used = 0.0
        for count, milli, cpus, weights in self._groups:
            places = len(free) - bisect_left(free, milli)
            if places >= count:
                used += weights[bisect_right(cpus, room.cpu)] * above[places]
        return self._total * above[-1] - used


def _running(same: list[tuple[int, float]]) -> list[float]:
    return [0.0, *accumulate(weight for _, weight in sorted(same))]
