"""The sequence of tasks and their mix."""

import random
from collections import Counter

from driver.simulator.trace.tasks import arrivals, capacity, mix
from tests.simulator.traces import always_last, machine, task

SMALL, LARGE, NO_CARD = task(1, 500), task(2), task(0)


def test_tasks_come_in_drawn_order_and_then_by_lot() -> None:
    """First all once, then with replacement, until so much was asked for."""
    played = list(arrivals([SMALL, NO_CARD, LARGE], until=6000, draw=always_last()))
    assert played == [SMALL, NO_CARD, LARGE, LARGE, LARGE]


def test_the_last_task_may_ask_for_more_than_was_left() -> None:
    """The sequence ends with the task that reaches the bound."""
    assert list(arrivals([LARGE, SMALL], until=1000, draw=always_last())) == [LARGE]


def test_a_shuffle_loses_nothing() -> None:
    """Each task comes once before any comes twice, and every seed has its own order."""
    tasks = [task(1, 1 + number) for number in range(50)]
    until = sum(one.ask.demand for one in tasks)
    draws = [random.Random(seed).randrange for seed in (1, 2)]  # noqa: S311
    orders = [list(arrivals(tasks, until=until, draw=draw)) for draw in draws]
    assert all(Counter(order) == Counter(tasks) for order in orders)
    assert orders[0] != orders[1]


def test_tasks_without_cards_end() -> None:
    """Tasks that never reach the bound come once each."""
    assert list(arrivals([NO_CARD, NO_CARD], until=1000, draw=always_last())) == [NO_CARD] * 2


def test_the_mix_counts_shapes() -> None:
    """The commonest first; memory of the node makes no difference."""
    found = mix([LARGE, SMALL, SMALL, NO_CARD, SMALL], commonest=2)
    assert [(shape.weight, shape.count, shape.cpu) for shape in found.shapes] == [
        (3, 1, 1000),
        (1, 0, 1000),
    ]


def test_capacity_is_in_thousandths() -> None:
    """Of cards."""
    assert capacity([machine(2), machine(0), machine(8)]) == 10_000
