"""What the usual requests cannot use, and which choice adds least to it."""

import pytest

from driver.model.names import MEMORY
from driver.policy import fullness
from driver.policy.fragmentation import unusable
from driver.policy.mix import Mix, Shape
from driver.policy.registry import node_scorer, objective
from driver.policy.view import NodeView
from tests.policy.views import node, partly, share, take, whole

WHOLE = Shape(weight=1, count=1)
PAIR = Shape(weight=1, count=2)
HALF = Shape(weight=1, amounts={MEMORY: 50})
NO_GPU = Shape(weight=1, count=0)
BIG_ONLY = Shape(weight=1, models=frozenset({"big"}))


def _unusable(view: NodeView, *shapes: Shape) -> float:
    left = [1 - fullness.before(device) for device in view.devices]
    return unusable(view, left, Mix(shapes))


@pytest.mark.parametrize(
    ("view", "shapes", "expected"),
    [
        pytest.param(node(whole(0), whole(1)), (WHOLE,), 0, id="all is usable"),
        pytest.param(node(whole(0), partly(1, 40)), (WHOLE,), 0.6, id="a rest is not"),
        pytest.param(node(whole(0), partly(1, 40)), (HALF,), 0, id="but for a half it is"),
        pytest.param(node(partly(0, 60), partly(1, 70)), (HALF,), 0.7, id="two small rests"),
        pytest.param(node(whole(0), partly(1, 40)), (PAIR,), 1.6, id="one place of two"),
        pytest.param(node(whole(0)), (NO_GPU,), 1, id="a request without a device"),
        pytest.param(node(whole(0)), (BIG_ONLY,), 1, id="another model"),
        pytest.param(node(whole(0), partly(1, 40)), (WHOLE, HALF), 0.3, id="the mean of two"),
    ],
)
def test_unusable_capacity(view: NodeView, shapes: tuple[Shape, ...], expected: float) -> None:
    """In devices' worth, as the source of the formula counts it."""
    assert _unusable(view, *shapes) == pytest.approx(expected)


def test_a_share_goes_where_it_breaks_no_whole_device() -> None:
    """With whole devices asked for, opening one costs what is left of it."""
    scoring = objective("fragmentation", mix=Mix((WHOLE,)))
    assert scoring is not None
    view = node(partly(0, 0), partly(1, 30))
    assert scoring.rank(view, share(1)) > scoring.rank(view, share(0))
    assert scoring.score(view, share(1)).total == pytest.approx(20)
    assert scoring.score(view, share(0)).total == pytest.approx(-80)


def test_a_node_that_the_usual_requests_cannot_use_goes_first() -> None:
    """A single card is of no use to pairs, so a single request takes that one."""
    scorer = node_scorer("fragmentation", mix=Mix((PAIR,)))
    assert scorer is not None
    single, pair = node(whole(0)), node(whole(0), whole(1))
    assert scorer.rank(single, take(0)) > scorer.rank(pair, take(0))


def test_small_differences_are_ties() -> None:
    """A twenty-fifth of a device is not worth leaving the order of the devices for."""
    scoring = objective("fragmentation", mix=Mix((WHOLE,)))
    assert scoring is not None
    view = node(partly(0, 30), partly(1, 31))
    assert scoring.rank(view, share(0, memory=1)) == scoring.rank(view, share(1, memory=1))
