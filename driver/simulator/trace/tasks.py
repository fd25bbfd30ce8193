"""What a trace is made of, and the sequence of tasks that is played from it.

Source of the method: the simulator of "Beware of Fragmentation", USENIX ATC 2023. Everything is in
thousandths: of a CPU, and of a card.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from driver.model.names import CORES, MEMORY
from driver.policy.mix import Mix, Shape

WHOLE_CARD = 1000

# Gives a number from 0 up to, not including, the one given; all equally likely.
Draw = Callable[[int], int]


class Machine(msgspec.Struct, frozen=True):
    """A node: thousandths of a CPU, memory in MiB, and cards of one model."""

    cpu: int
    memory: int
    cards: int
    model: str


class Ask(NamedTuple):
    """What a task asks for: so many cards of one of `models` (none: any), `milli` of each."""

    cpu: int
    memory: int
    cards: int
    milli: int
    models: frozenset[str]

    @property
    def demand(self) -> int:
        """Thousandths of cards in all."""
        return self.cards * self.milli


class Task(msgspec.Struct, frozen=True):
    """One task, and how many seconds it ran."""

    ask: Ask
    seconds: int = 0


def capacity(machines: Sequence[Machine]) -> int:
    """Thousandths of cards of all machines."""
    return WHOLE_CARD * sum(machine.cards for machine in machines)


def arrivals(tasks: Sequence[Task], *, until: int, draw: Draw) -> Iterator[Task]:
    """All tasks in a drawn order, then drawn with replacement, until so much was asked for.

    Tasks that ask for no card at all would go on for ever: then the order ends with the last one.
    """
    asked = 0
    for task in _shuffled(tasks, draw):
        if asked >= until:
            return
        asked += task.ask.demand
        yield task
    while 0 < asked < until:
        task = tasks[draw(len(tasks))]
        asked += task.ask.demand
        yield task


def _shuffled(tasks: Sequence[Task], draw: Draw) -> list[Task]:
    shuffled = list(tasks)
    for last in range(len(shuffled) - 1, 0, -1):
        other = draw(last + 1)
        shuffled[last], shuffled[other] = shuffled[other], shuffled[last]
    return shuffled


def mix(tasks: Sequence[Task], *, commonest: int | None = None) -> Mix:
    """The shapes of the tasks by how often they come, all of them or so many.

    Memory of the node is no part of a shape, as in the source.
    """
    shapes = Counter(task.ask._replace(memory=0) for task in tasks)
    ordered = sorted(shapes.items(), key=lambda item: (-item[1], _order(item[0])))
    return Mix(tuple(_shape(ask, number) for ask, number in ordered[:commonest]))


def amounts(milli: int) -> dict[str, int]:
    """So many thousandths of a card, as amounts of what a card has."""
    return {MEMORY: milli, CORES: milli}


def _shape(ask: Ask, number: int) -> Shape:
    return Shape(
        weight=number, count=ask.cards, amounts=amounts(ask.milli), models=ask.models, cpu=ask.cpu
    )


def _order(ask: Ask) -> tuple[object, ...]:
    return ask.cpu, ask.cards, ask.milli, sorted(ask.models)
