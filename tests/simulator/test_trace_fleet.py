"""Where tasks go: states of machines, sets of cards, the best machine."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.policy.registry import node_scorer, objective
from driver.simulator.trace.fleet import Fleet, Place
from driver.simulator.trace.placer import Option, PolicyPlacer, StockPlacer
from driver.simulator.trace.state import MOST_SETS, CardUse, card_sets, idle
from driver.simulator.trace.tasks import Ask
from tests.simulator.traces import ask, machine

FIRST_FIT = PolicyPlacer(None, None)


@pytest.mark.parametrize(
    ("used", "wanted", "sets"),
    [
        pytest.param((0, 0, 0), ask(2), [(0, 1)], id="idle cards are alike"),
        pytest.param((0, 500, 0), ask(2), [(0, 2)], id="whole cards need idle ones"),
        pytest.param((0, 500, 500), ask(1, 500), [(0,), (1,)], id="one of each kind"),
        pytest.param((0, 600, 500), ask(1, 500), [(0,), (2,)], id="what is too full"),
        pytest.param((0, 500, 0), ask(2, 300), [(0, 1), (0, 2)], id="shares of several"),
        pytest.param((0, 500), ask(2), [], id="too few"),
        pytest.param((0, 500), ask(0), [()], id="no card"),
    ],
)
def test_card_sets(used: tuple[int, ...], wanted: Ask, sets: list[tuple[int, ...]]) -> None:
    """Every kind of choice once, in the order of the cards."""
    state = idle(machine(len(used)))
    state = state._replace(cards=tuple(CardUse(one, int(one > 0)) for one in used))
    assert list(card_sets(state, wanted)) == sets


@given(st.lists(st.sampled_from([0, 300, 600]), max_size=6), st.integers(0, 4))
def test_card_sets_are_all_kinds_of_sets(used: list[int], count: int) -> None:
    """As from trying all sets and keeping the first of each kind."""
    cards = tuple(CardUse(one, int(one > 0)) for one in used)
    fitting = [index for index, one in enumerate(used) if one + 400 <= 1000]
    first: dict[tuple[int, ...], tuple[int, ...]] = {}
    for chosen in combinations(fitting, count):
        first.setdefault(tuple(sorted(used[index] for index in chosen)), chosen)
    state = idle(machine(len(used)))._replace(cards=cards)
    assert list(card_sets(state, ask(count, 400))) == list(first.values())


def test_no_machine_has_more_sets_than_can_be_rated() -> None:
    """Sixty cards, each in another use, and shares of eight of them."""
    cards = tuple(CardUse(one, 1) for one in range(1, 61))
    sets = list(card_sets(idle(machine(60))._replace(cards=cards), ask(8, 500)))
    assert len(sets) == len(set(sets)) == MOST_SETS


@pytest.mark.parametrize(
    ("wanted", "holds"),
    [
        (ask(cpu=8000), True),
        (ask(cpu=8001), False),
        (ask(models=["A", "B"]), True),
        (ask(models=["B"]), False),
        (ask()._replace(memory=8001), False),
    ],
)
def test_what_a_machine_holds(wanted: Ask, *, holds: bool) -> None:
    """CPU, memory and model."""
    assert idle(machine()).holds(wanted) is holds


def test_a_task_that_left_leaves_nothing() -> None:
    """Coming and going cancel out."""
    state = idle(machine())
    there = state.with_task(ask(2, 400), (0, 1))
    assert there.cards == (CardUse(400, 1), CardUse(400, 1))
    assert there.with_task(ask(2, 400), (0, 1), -1) == state


def test_first_fit_takes_machines_in_order() -> None:
    """And cards in order, whatever came before."""
    fleet = Fleet([machine(1), machine(2)])
    for expected in (Place(0, (0,)), Place(1, (0,)), Place(1, (1,)), None):
        place = fleet.best(ask(), FIRST_FIT)
        assert place == expected
        if place is not None:
            fleet.take(place, ask())
    fleet.leave(Place(1, (0,)), ask())
    assert fleet.best(ask(), FIRST_FIT) == Place(1, (0,))


def test_equals_share_their_options() -> None:
    """A hundred idle machines are looked at once; a changed one once more."""

    class Counting(StockPlacer):
        looks = 0

        def option(self, *args: object) -> Option | None:
            self.looks += 1
            return super().option(*args)  # type: ignore[arg-type]

    placer, fleet = Counting(), Fleet([machine(0)] * 100)
    for _ in range(3):
        assert fleet.best(ask(0), placer) == Place(0, ())
    assert placer.looks == 1
    fleet.take(Place(0, ()), ask(0))
    fleet.best(ask(0), placer)
    assert placer.looks == 2


def test_prices_move_a_task() -> None:
    """What is scarce costs, and the first machine no longer is the best."""

    class Taking(StockPlacer):
        def option(self, *args: object) -> Option | None:
            machine = args[0].machine  # type: ignore[attr-defined]
            return Option((0.0,), (0,), (((1, machine.model), 1000),))

    fleet = Fleet([machine(model="scarce"), machine(model="plenty")])
    assert fleet.best(ask(), Taking()) == Place(0, (0,))
    assert fleet.best(ask(), Taking(), {(1, "scarce"): 0.1}) == Place(1, (0,))


def test_a_lot_reaches_every_machine() -> None:
    """All that hold the task can be drawn, and no other."""
    fleet = Fleet([machine(1), machine(0), machine(1)])
    fleet.take(Place(2, ()), ask(0))
    drawn = {fleet.any(ask(), FIRST_FIT, draw) for draw in (lambda _: 0, lambda below: below - 1)}
    assert drawn == {Place(0, (0,)), Place(2, (0,))}
    assert fleet.any(ask(8), FIRST_FIT, lambda _: 0) is None


def test_the_stock_scheduler_takes_the_idlest() -> None:
    """Least allocated and balanced: not the first machine, but the larger one."""
    fleet = Fleet([machine(cpu=4000, memory=4000), machine(cpu=16000, memory=16000)])
    place = fleet.best(Ask(2000, 2000, 0, 0, frozenset()), StockPlacer())
    assert place == Place(1, ())


def test_policies_are_those_of_a_cluster() -> None:
    """Compact joins what is in use, spread does not."""
    for policy, expected in (("compact", Place(1, (0,))), ("spread", Place(0, (0,)))):
        fleet = Fleet([machine(2), machine(2)])
        fleet.take(Place(1, (0,)), ask(1, 300))
        placer = PolicyPlacer(node_scorer(policy), objective(policy))
        assert fleet.best(ask(1, 300), placer) == expected
