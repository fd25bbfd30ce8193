"""What some requests depend on and others do not, and what it costs to take it.

Two things can run short long before capacity does: devices of a make that some requests insist on,
and idle devices side by side, for requests that want several. What remains of each is compared with
what will be asked for until all capacity is gone, if the usual requests go on coming.
"""

from collections.abc import Iterable, Mapping, Sequence

from driver.policy.fragmentation_wants import WHOLE, Room, Want

# A width and a make. Width 1: capacity of this make, in thousandths of a device; 2 and more: places
# for so many whole devices on one node.
Thing = tuple[int, str]
Amounts = tuple[tuple[Thing, float], ...]

# What it costs to take a place that would be missed for certain, as a part of its capacity.
_PLACE_COST = 0.5


class Scarcity:
    """Counts and prices things, for requests given as what each make of device sees of them.

    The wants of all makes are in the same order.
    """

    def __init__(self, wants: Mapping[str, Sequence[Want]]) -> None:
        self._wants = wants
        self._widths = _widths(one for of_make in wants.values() for one in of_make)

    def things(self, make: str, room: Room) -> Mapping[Thing, int]:
        """What there is in a room."""
        idle = sum(one == WHOLE for one in room.free)
        found: dict[Thing, int] = {(1, make): sum(room.free)}
        for width, cpu in self._widths.items():
            found[width, make] = min(idle // width, room.cpu // cpu if cpu else idle)
        return found

    def taken(self, make: str, before: Room, after: Room) -> Amounts:
        """What a choice takes: less of some things is in the room."""
        had, has = self.things(make, before), self.things(make, after)
        return tuple((thing, had[thing] - has[thing]) for thing in had if had[thing] != has[thing])

    def prices(self, supply: Mapping[Thing, int]) -> Mapping[Thing, float]:
        """What one of each thing costs, in thousandths of a device, if there is so much of all."""
        prices: dict[Thing, float] = {}
        for thing, spoken_for in self._spoken_for(supply).items():
            width, part = thing[0], min(1.0, spoken_for)
            # A place is rarely missed while there are more than enough.
            prices[thing] = part if width == 1 else _PLACE_COST * part**2 * width * WHOLE
        return prices

    def _spoken_for(self, supply: Mapping[Thing, int]) -> Mapping[Thing, float]:
        """Which part of what there is will be asked for by those who depend on it."""
        rows = list(zip(*self._wants.values(), strict=True))
        each = [max(one.devices * one.milli for one in row) for row in rows]
        mean = sum(row[0].number * size for row, size in zip(rows, each, strict=True))
        left = sum(amount for (width, _), amount in supply.items() if width == 1)
        coming = left / mean if mean else 0.0
        found: dict[Thing, float] = {}
        for row, size in zip(rows, each, strict=True):
            makes = [make for make, one in zip(self._wants, row, strict=True) if one.runs]
            number = coming * row[0].number
            if 0 < len(makes) < len(row):
                _add(found, supply, [(1, make) for make in makes], number * size)
            # Shares of several devices want no idle ones.
            if row[0].devices in self._widths and size == row[0].devices * WHOLE:
                _add(found, supply, [(row[0].devices, make) for make in makes], number)
        return found


def _add(
    found: dict[Thing, float], supply: Mapping[Thing, int], things: list[Thing], asked: float
) -> None:
    # Where nothing is left, nothing can be taken: any number does.
    there = max(1, sum(supply.get(thing, 0) for thing in things))
    for thing in things:
        found[thing] = found.get(thing, 0.0) + asked / there


def _widths(wants: Iterable[Want]) -> Mapping[int, int]:
    """The numbers of whole devices that are asked for together, and the usual CPU with each."""
    cpus: dict[int, list[int]] = {}
    for want in wants:
        if want.devices > 1 and want.milli == WHOLE and want.runs:
            cpus.setdefault(want.devices, []).append(want.cpu)
    return {width: sorted(found)[len(found) // 2] for width, found in sorted(cpus.items())}
