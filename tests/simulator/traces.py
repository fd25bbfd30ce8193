"""Small traces, and one of a real cluster where it is at hand."""

import os
from collections.abc import Sequence
from pathlib import Path

from driver.simulator.trace.tasks import Ask, Draw, Machine, Task

ROOT = Path(__file__).resolve().parents[2]
TRACE = Path(os.environ.get("QUADRANT_SHARED", ROOT.parent / "shared")) / "trace"


def machine(cards: int = 2, *, cpu: int = 8000, memory: int = 8000, model: str = "A") -> Machine:
    """A node with so many cards."""
    return Machine(cpu=cpu, memory=memory, cards=cards, model=model)


def ask(cards: int = 1, milli: int = 1000, *, cpu: int = 1000, models: Sequence[str] = ()) -> Ask:
    """A task's wish; it takes a MiB of memory."""
    return Ask(cpu, 1, cards, milli if cards else 0, frozenset(models))


def task(cards: int = 1, milli: int = 1000, *, cpu: int = 1000, seconds: int = 0) -> Task:
    """A task."""
    return Task(ask(cards, milli, cpu=cpu), seconds)


def never() -> Draw:
    """For what must not draw."""

    def draw(_: int) -> int:
        raise AssertionError("nothing is to be drawn here")

    return draw


def always_last() -> Draw:
    """Draws the greatest number: a shuffle then leaves everything where it is."""
    return lambda below: below - 1
