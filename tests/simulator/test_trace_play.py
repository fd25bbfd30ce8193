"""Playing traces: right answers of small ones, and what is known of a real one."""

import random

import pytest

from driver.cli.simulation import recorded
from driver.policy.registry import BUILT_IN
from driver.simulator.trace.deciders import by_lot, by_policy, in_order, with_stock_scheduler
from driver.simulator.trace.departures import play_leaving
from driver.simulator.trace.measure import Measure
from driver.simulator.trace.play import Decide, Decisions, Outcome, play
from driver.simulator.trace.state import idle
from driver.simulator.trace.tasks import Machine, Task, arrivals, capacity, mix
from tests.simulator.traces import TRACE, machine, never, task


def _play(tasks: list[Task], machines: list[Machine], decide: Decide) -> Outcome:
    ticks = iter(range(10**6))
    return play(tasks, machines, Decisions(decide, lambda: next(ticks)), Measure(tasks))


def _fragmentation(tasks: list[Task], machines: list[Machine]) -> Decide:
    return by_policy(
        "fragmentation", "fragmentation", mix=mix(tasks), machines=machines, registry=BUILT_IN
    )


def test_measures_of_a_small_trace() -> None:
    """Ten cards; the sixth task finds no two idle cards together."""
    machines = [machine(2), machine(2), machine(2), machine(2), machine(2)]
    tasks = [task(1), task(2), task(2), task(2), task(2), task(2)]
    outcome = _play(tasks, machines, in_order())
    # Tasks for ten cards never had arrived: after the fifth it is nine, after the sixth eleven.
    assert [outcome.a95, outcome.a100, outcome.a130] == [None] * 3
    assert (outcome.tasks, outcome.failed) == (6, 1)
    assert list(outcome.decisions) == [1] * 6
    # One idle card: useless to five of the six tasks.
    assert outcome.fragmentation == pytest.approx(100 * (5 / 6) / 10)


def test_allocation_is_averaged_over_the_events_at_a_point() -> None:
    """A task without a card arrives at the same point again."""
    machines = [machine(1, cpu=1000), machine(1)]
    tasks = [task(1, cpu=2000), task(1, 500), task(1, 500, cpu=9000), task(0)]
    outcome = _play(tasks, machines, in_order())
    assert outcome.a100 == pytest.approx(75)
    assert outcome.failed == 1


def test_fragmentation_keeps_room_for_pairs() -> None:
    """First fit breaks both pairs of cards, the policy only one."""
    machines = [machine(2), machine(2, cpu=16000)]
    shares, pair = [task(1, 400), task(1, 400)], task(2)
    filler = task(1, 700)
    tasks = [shares[0], filler, shares[1], pair]
    assert _play(tasks, machines, _fragmentation(tasks, machines)).failed == 0


def test_who_places_tasks_without_cards() -> None:
    """kube-scheduler's scores put them on the idlest machine, where a card then lacks CPU."""
    machines = [machine(0, cpu=4000), machine(1, cpu=5000)]
    tasks = [task(0, cpu=4000), task(1, cpu=4000)]
    assert _play(tasks, machines, _fragmentation(tasks, machines)).failed == 0
    with_stock = with_stock_scheduler(_fragmentation(tasks, machines))
    assert _play(tasks, machines, with_stock).failed == 1


def test_draws_are_for_lots_only() -> None:
    """One machine: the draw has one outcome; nothing holds: none."""
    asked = []

    def draw(below: int) -> int:
        asked.append(below)
        return 0

    outcome = _play([task(1), task(1)], [machine(1)], by_lot(draw))
    assert (outcome.failed, asked) == (1, [1])


def test_tasks_leave() -> None:
    """The card of the first task serves the third, which would else find none."""
    machines = [machine(1)]
    tasks = [task(1, seconds=10), task(0, seconds=1), task(1, seconds=100)]
    served = play_leaving(tasks, machines, in_order())
    assert (served.failed, served.tasks) == (0, 3)
    # Any faster, and two tasks would ask for the one card at the end.
    assert served.interval == pytest.approx(5)


def test_what_finds_no_place_is_asked_for_as_long_as_it_would_have_run() -> None:
    """The second task meets a full machine; when the first has left, half of its time is over."""
    tasks = [task(1, seconds=10), task(1, seconds=10), task(0, seconds=1), task(0, seconds=1)]
    served = play_leaving(tasks, [machine(1)], in_order())
    assert served.failed == 1
    assert served.interval == pytest.approx(10 / 3)
    # After the third all of one card is served; after the fourth nothing of what is asked for.
    assert served.served == pytest.approx(50)


def test_the_measure_is_that_of_the_source() -> None:
    """Of two idle cards, one task of two can use neither."""
    measure = Measure([task(1), task(1, cpu=9000)])
    assert measure.of([(idle(machine(2)), 3)]) == pytest.approx(3 * 1000)


@pytest.mark.skipif(not TRACE.exists(), reason=f"no trace at {TRACE} (QUADRANT_SHARED)")
def test_first_fit_on_a_real_trace_does_as_well_as_is_known() -> None:
    """Measured by others with another program: 94.19 on average over ten seeds."""
    machines = recorded.machines(str(TRACE / "nodes.csv"))
    tasks = recorded.tasks(str(TRACE / "tasks-default.csv"))
    assert (len(machines), capacity(machines), len(tasks)) == (1213, 6_212_000, 8152)
    until = capacity(machines) * 102 // 100
    played = arrivals(tasks, until=until, draw=random.Random(42).randrange)  # noqa: S311
    outcome = _play(list(played), machines, in_order())
    assert outcome.a100 == pytest.approx(94.19, abs=0.4)


@pytest.mark.skipif(not TRACE.exists(), reason=f"no trace at {TRACE} (QUADRANT_SHARED)")
def test_fragmentation_beats_first_fit_on_a_part_of_a_real_trace() -> None:
    """Every tenth node, tasks for all of their cards; `hack/trace` plays all of it."""
    machines = recorded.machines(str(TRACE / "nodes.csv"))[::10]
    tasks = recorded.tasks(str(TRACE / "tasks-default.csv"))
    draw = random.Random(42).randrange  # noqa: S311
    played = list(arrivals(tasks, until=capacity(machines) * 102 // 100, draw=draw))
    first = _play(played, machines, in_order())
    best = _play(played, machines, _fragmentation(tasks, machines))
    assert best.a100 is not None
    assert first.a100 is not None
    assert best.a100 > first.a100 + 1


def test_nothing_is_drawn_without_need() -> None:
    """Policies do not draw."""
    assert list(arrivals([task(1)], until=1000, draw=never())) == [task(1)]
