"""Other traces, made from a recorded one: a policy must not be good on one trace only.

Each is drawn by a seed of its own, so that it is always the same.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from driver.simulator.trace.tasks import WHOLE_CARD, Ask, Machine, Task

Variant = Callable[[Sequence[Machine], Sequence[Task]], list[Task]]
_SEED = 1
_TWO_MODELS = 0.3
_MULTI = 0.25
_LARGEST_CPU, _LARGEST_MEMORY = 90_000, 370_000


def named(machines: Sequence[Machine], tasks: Sequence[Task]) -> list[Task]:
    """A third of the tasks with cards name one model or two, those with more cards more often."""
    draws = random.Random(_SEED)  # noqa: S311 - nothing is secret
    cards: Counter[str] = Counter()
    for machine in machines:
        cards[machine.model] += machine.cards
    kinds = set(machines)

    def models(ask: Ask) -> frozenset[str]:
        possible = sorted({kind.model for kind in kinds if _holds(kind, ask)})
        weights = [cards[model] for model in possible]
        count = 2 if draws.random() < _TWO_MODELS else 1
        return frozenset(draws.choices(possible, weights, k=count)) if possible else frozenset()

    return [
        _asking(task, task.ask._replace(models=models(task.ask)))
        if task.ask.cards and draws.random() < 1 / 3
        else task
        for task in tasks
    ]


def scarce(machines: Sequence[Machine], tasks: Sequence[Task]) -> list[Task]:
    """A third of the tasks with cards name models, rare ones as often as common ones."""
    draws = random.Random(_SEED)  # noqa: S311
    models = sorted({machine.model for machine in machines if machine.cards})
    most = {
        model: (
            max(machine.cards for machine in machines if machine.model == model),
            max(machine.cpu for machine in machines if machine.model == model),
        )
        for model in models
    }

    def named(ask: Ask) -> Ask:
        possible = [one for one in models if most[one][0] >= ask.cards and most[one][1] >= ask.cpu]
        count = min(len(possible), draws.choice((1, 1, 2)))
        return ask._replace(models=frozenset(draws.sample(possible, count)))

    return [
        _asking(task, named(task.ask)) if task.ask.cards and draws.random() < 1 / 3 else task
        for task in tasks
    ]


def whole(_: Sequence[Machine], tasks: Sequence[Task]) -> list[Task]:
    """Shares become whole cards."""
    return [
        _asking(task, task.ask._replace(milli=WHOLE_CARD)) if task.ask.cards else task
        for task in tasks
    ]


def shares(_: Sequence[Machine], tasks: Sequence[Task]) -> list[Task]:
    """Whole cards become shares, of sizes that the trace has."""
    draws = random.Random(_SEED)  # noqa: S311
    sizes = [task.ask.milli for task in tasks if 0 < task.ask.milli < WHOLE_CARD] or [WHOLE_CARD]
    return [
        _asking(task, task.ask._replace(cards=1, milli=draws.choice(sizes)))
        if task.ask.milli == WHOLE_CARD
        else task
        for task in tasks
    ]


def multi(_: Sequence[Machine], tasks: Sequence[Task]) -> list[Task]:
    """A quarter of the tasks with one whole card get two, four or eight, and CPU with them."""
    draws = random.Random(_SEED)  # noqa: S311

    def wider(ask: Ask) -> Ask:
        cards = draws.choices((2, 4, 8), (3, 2, 1))[0]
        return ask._replace(
            cards=cards,
            cpu=min(ask.cpu * cards, _LARGEST_CPU),
            memory=min(ask.memory * cards, _LARGEST_MEMORY),
        )

    return [
        _asking(task, wider(task.ask))
        if (task.ask.cards, task.ask.milli) == (1, WHOLE_CARD) and draws.random() < _MULTI
        else task
        for task in tasks
    ]


def _holds(machine: Machine, ask: Ask) -> bool:
    return machine.cards >= ask.cards and machine.cpu >= ask.cpu and machine.memory >= ask.memory


def _asking(task: Task, ask: Ask) -> Task:
    return Task(ask, task.seconds)


VARIANTS: Mapping[str, Variant] = {
    "default": lambda _, tasks: list(tasks),
    "named": named,
    "scarce": scarce,
    "shares": shares,
    "whole": whole,
    "multi": multi,
}
