"""What is in use of a machine, and which cards of it a task may take."""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from driver.policy.fragmentation_wants import Room
from driver.simulator.trace.tasks import WHOLE_CARD, Ask, Machine

# Shares of many cards at once, on a machine with many cards in different use, are in more sets than
# anybody can rate.
MOST_SETS = 2000


class CardUse(NamedTuple):
    """Thousandths in use of one card, and by how many tasks."""

    used: int
    tasks: int


class State(NamedTuple):
    """A machine and what is left of it. Machines in the same state are interchangeable."""

    machine: Machine
    cpu: int
    memory: int
    cards: tuple[CardUse, ...]

    def holds(self, ask: Ask) -> bool:
        """Whether the task may run there as far as anything but cards is concerned."""
        return (
            ask.cpu <= self.cpu
            and ask.memory <= self.memory
            and not (ask.models and ask.cards and self.machine.model not in ask.models)
        )

    def room(self) -> Room:
        """What is free, as `fragmentation` looks at it."""
        return Room(self.cpu, tuple(sorted([WHOLE_CARD - card.used for card in self.cards])))

    def with_task(self, ask: Ask, cards: tuple[int, ...], sign: int = 1) -> "State":
        """After a task has come to these cards, or has left them (`sign` -1)."""
        changed = list(self.cards)
        for card in cards:
            used, tasks = changed[card]
            changed[card] = CardUse(used + sign * ask.milli, tasks + sign)
        return self._replace(
            cpu=self.cpu - sign * ask.cpu,
            memory=self.memory - sign * ask.memory,
            cards=tuple(changed),
        )


def idle(machine: Machine) -> State:
    """A machine with nothing on it."""
    return State(machine, machine.cpu, machine.memory, (CardUse(0, 0),) * machine.cards)


def card_sets(state: State, ask: Ask) -> Iterator[tuple[int, ...]]:
    """The cards that the task may take, in the order of the cards; at most `MOST_SETS` of them.

    Of sets that differ only in which of several equally used cards they have, the first.
    """
    fitting = [
        index for index, card in enumerate(state.cards) if card.used + ask.milli <= WHOLE_CARD
    ]
    if len({state.cards[index] for index in fitting}) <= 1:
        # All alike, as always for whole cards: the first ones.
        if len(fitting) >= ask.cards:
            yield tuple(fitting[: ask.cards])
        return
    yield from islice(_sets(state.cards, fitting, ask.cards, frozenset()), MOST_SETS)


def _sets(
    cards: tuple[CardUse, ...], fitting: list[int], count: int, passed: frozenset[CardUse]
) -> Iterator[tuple[int, ...]]:
    """Sets of so many of these cards; none of a kind of which one was passed over before."""
    if not count:
        yield ()
        return
    for place, index in enumerate(fitting):
        if cards[index] in passed:
            continue
        for rest in _sets(cards, fitting[place + 1 :], count - 1, passed):
            yield (index, *rest)
        passed |= {cards[index]}
