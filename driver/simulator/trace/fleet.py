"""All machines, and the best of them for a task.

Machines in the same state share what was worked out for it, and a state that has not changed is not
looked at again: a decision costs little more than looking up what is known.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from driver.policy.fragmentation_scarcity import Thing
from driver.simulator.trace.placer import Option, Placer
from driver.simulator.trace.state import State, idle
from driver.simulator.trace.tasks import Ask, Draw, Machine

Prices = Mapping[Thing, float]
_FREE: Prices = MappingProxyType({})


class Place(NamedTuple):
    """The machine, by its number, and the cards of it."""

    machine: int
    cards: tuple[int, ...]


class Fleet:
    """Machines in their order, which decides between equals."""

    def __init__(self, machines: Sequence[Machine]) -> None:
        self._states: list[State] = []
        self._numbers: dict[State, int] = {}
        # Which machines are in a state, by its number; only states that some are in.
        self._groups: dict[int, list[int]] = {}
        self._at = [self._number(idle(machine)) for machine in machines]
        for machine, number in enumerate(self._at):
            self._groups.setdefault(number, []).append(machine)
        self._known: dict[tuple[Placer, Ask], dict[int, Option | None]] = {}

    def best(self, ask: Ask, placer: Placer, prices: Prices = _FREE) -> Place | None:
        """The best machine and cards; None where none holds the task.

        What an option takes of scarce things worsens the first part of its order by their prices.
        """
        best: tuple[tuple[float, ...], int, tuple[int, ...]] | None = None
        for machines, option in self._options(ask, placer):
            order = option.order
            if option.taken:
                cost = sum([prices.get(thing, 0.0) * amount for thing, amount in option.taken])
                order = (order[0] + cost, *order[1:])
            if best is None or (order, machines[0]) < best[:2]:
                best = order, machines[0], option.cards
        return Place(*best[1:]) if best is not None else None

    def any(self, ask: Ask, placer: Placer, draw: Draw) -> Place | None:
        """A machine drawn from all that hold the task."""
        options = list(self._options(ask, placer))
        holding = sum(len(machines) for machines, _ in options)
        drawn = draw(holding) if holding else 0
        for machines, option in options:
            if drawn < len(machines):
                return Place(machines[drawn], option.cards)
            drawn -= len(machines)
        return None

    def take(self, place: Place, ask: Ask) -> None:
        """The task is placed."""
        self._move(place.machine, self._state(place.machine).with_task(ask, place.cards))

    def leave(self, place: Place, ask: Ask) -> None:
        """The task has left."""
        self._move(place.machine, self._state(place.machine).with_task(ask, place.cards, -1))

    def states(self) -> Iterator[tuple[State, int]]:
        """The states that machines are in, and how many in each."""
        for number, machines in self._groups.items():
            yield self._states[number], len(machines)

    def _options(self, ask: Ask, placer: Placer) -> Iterator[tuple[list[int], Option]]:
        known = self._known.setdefault((placer, ask), {})
        for number, machines in self._groups.items():
            if number not in known:
                known[number] = placer.option(self._states[number], ask)
            option = known[number]
            if option is not None:
                yield machines, option

    def _state(self, machine: int) -> State:
        return self._states[self._at[machine]]

    def _number(self, state: State) -> int:
        number = self._numbers.setdefault(state, len(self._states))
        if number == len(self._states):
            self._states.append(state)
        return number

    def _move(self, machine: int, state: State) -> None:
        old = self._at[machine]
        group = self._groups[old]
        del group[bisect_left(group, machine)]
        if not group:
            del self._groups[old]
        self._at[machine] = new = self._number(state)
        insort(self._groups.setdefault(new, []), machine)
