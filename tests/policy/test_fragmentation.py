"""What a choice spoils for the usual requests: the terms of the score."""

import pytest

from driver.model.names import MEMORY
from driver.policy.fragmentation import Fragmentation
from driver.policy.mix import UNKNOWN, Mix, Shape
from driver.policy.registry import node_scorer, objective
from driver.policy.view import Choice, NodeView, Taken
from tests.policy.views import node, partly, share, take, whole

WHOLE = Shape(weight=1, count=1)
PAIR = Shape(weight=1, count=2)
HALF = Shape(weight=1, amounts={MEMORY: 50})


def _terms(view: NodeView, choice: Choice, *shapes: Shape) -> tuple[float, ...]:
    return tuple(term.points for term in Fragmentation(Mix(shapes)).score(view, choice).terms)


def test_a_share_goes_where_it_breaks_no_whole_device() -> None:
    """With whole devices asked for, opening one costs what is left of it."""
    view = node(partly(0, 0), partly(1, 30))
    # Of gpu-1 20 less are useless: half of that now, and as much in the end.
    assert _terms(view, share(1), WHOLE) == pytest.approx((10, 20))
    assert _terms(view, share(0), WHOLE) == pytest.approx((-40, -80))


def test_a_node_that_the_usual_requests_cannot_use_goes_first() -> None:
    """A single card is of no use to pairs, so a single request takes that one."""
    scorer = node_scorer("fragmentation", mix=Mix((PAIR,)))
    assert scorer is not None
    single, pair = node(whole(0)), node(whole(0), whole(1))
    assert scorer.rank(single, take(0)) > scorer.rank(pair, take(0))


def test_what_fills_a_device_together_goes_together() -> None:
    """Both devices can be used for a half; only on the half full one nothing is left over."""
    scoring = objective("fragmentation", mix=Mix((HALF, WHOLE)))
    assert scoring is not None
    view = node(partly(0, 0), partly(1, 50))
    assert scoring.rank(view, share(1, memory=50)) > scoring.rank(view, share(0, memory=50))


def test_a_rest_that_nobody_takes_is_avoided() -> None:
    """Halves and shares of 30 are usual: of 60 another 30 remain, of 50 only 20 (the picture)."""
    thirty = Shape(weight=1, amounts={MEMORY: 30})
    scoring = objective("fragmentation", mix=Mix((HALF, thirty)))
    assert scoring is not None
    view = node(partly(0, 50), partly(1, 40))
    assert scoring.rank(view, share(1, memory=30)) > scoring.rank(view, share(0, memory=30))


def test_cpu_that_devices_need_counts() -> None:
    """A request without devices spoils a node where its CPU is needed, and none that has plenty."""
    shape = Shape(weight=1, count=1, cpu=4000)
    choice = Choice((), cpu=4000)
    tight = NodeView(name="tight", devices=(whole(0), whole(1)), cpu=8000)
    ample = NodeView(name="ample", devices=(whole(0), whole(1)), cpu=64000)
    assert _terms(tight, choice, shape) == pytest.approx((0, -100))
    assert _terms(ample, choice, shape) == pytest.approx((0, 0))


def test_a_view_without_cpu_has_enough() -> None:
    """Where CPU is not known, only devices count."""
    shape = Shape(weight=1, count=1, cpu=4000)
    assert _terms(node(whole(0)), Choice((), cpu=4000), shape) == pytest.approx((0, 0))


def test_makes_are_judged_apart() -> None:
    """What is taken of one make spoils nothing of another."""
    big = whole(1, model="big")
    view = node(whole(0, model="small"), big)
    named = Shape(weight=1, models=frozenset({"big"}))
    assert _terms(view, take(0), named) == pytest.approx((50, 100))
    assert _terms(view, take(1), named) == pytest.approx((0, 0))


def test_an_unknown_mix_keeps_devices_together() -> None:
    """Without any request seen, whole devices are wanted, few and many."""
    view = node(partly(0, 50), *(partly(index, 0) for index in range(1, 8)))
    scorer = Fragmentation(UNKNOWN)
    assert scorer.score(view, share(0)).total > scorer.score(view, share(1)).total


def test_the_order_of_choices_does_not_matter() -> None:
    """A scorer is a function of its arguments, whatever it remembers."""
    view, other = node(partly(0, 10), partly(1, 30)), node(partly(0, 60), name="other")
    mix = Mix((WHOLE, HALF, PAIR))
    scorer = Fragmentation(mix)
    choices = [(view, share(0)), (other, share(0)), (view, share(1)), (view, share(0))]
    together = [scorer.score(*one) for one in choices]
    assert together == [Fragmentation(mix).score(*one) for one in choices]


def test_a_device_may_be_taken_twice() -> None:
    """Two shares of one device count together."""
    view = node(partly(0, 0))
    twice = Choice(tuple(Taken(0, {MEMORY: 50}, exclusive=False) for _ in range(2)))
    assert _terms(view, twice, WHOLE) == pytest.approx((0, 0))
