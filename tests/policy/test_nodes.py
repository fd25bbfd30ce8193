"""Which of two nodes a policy of the node axis prefers, the request included."""

import pytest

from driver.policy.registry import node_scorer
from driver.policy.view import Choice, NodeView
from tests.policy.views import node, partly, share, take, whole

Option = tuple[NodeView, Choice]

_EMPTY: Option = (node(*(whole(index) for index in range(4))), take(0))
_HALF: Option = (node(*(whole(index, held=index < 2) for index in range(4))), take(2))
_LARGE: Option = (node(*(whole(index, held=index < 2) for index in range(8))), take(2))
_FEW_BIG: Option = (node(partly(0, 60), partly(1, 0)), share(1))
_MANY_SMALL: Option = (node(partly(0, 60, shares=3), partly(1, 0)), share(1))


@pytest.mark.parametrize(
    ("fuller", "emptier"),
    [
        pytest.param(_HALF, _EMPTY, id="in use before"),
        pytest.param(_HALF, _LARGE, id="by share of the node, not by number"),
        pytest.param(_MANY_SMALL, _FEW_BIG, id="slots count beside capacity"),
        pytest.param(
            (node(partly(0, 20), partly(1, 0)), share(1)),
            (node(partly(0, 20), partly(1, 0)), share(0)),
            id="a card opened counts",
        ),
    ],
)
def test_compact_takes_the_fuller_and_spread_the_emptier(fuller: Option, emptier: Option) -> None:
    """The two are each other's opposite."""
    compact, spread = node_scorer("compact"), node_scorer("spread")
    assert compact is not None
    assert spread is not None
    assert compact.rank(*fuller) > compact.rank(*emptier)
    assert spread.rank(*fuller) < spread.rank(*emptier)


def test_a_full_node_scores_a_hundred_for_compact_but_for_its_slots() -> None:
    """Devices and capacity are a third each; four whole cards are four of forty slots."""
    compact = node_scorer("compact")
    assert compact is not None
    view = node(*(whole(index, held=index < 3) for index in range(4)))
    terms = {term.name: round(term.points, 2) for term in compact.score(view, take(3)).terms}
    assert terms == {"devices in use": 33.33, "slots in use": 3.33, "capacity in use": 33.33}


def test_a_node_without_devices_can_be_scored() -> None:
    """It is in no use at all."""
    spread = node_scorer("spread")
    assert spread is not None
    assert spread.score(node(), Choice()).total == pytest.approx(100)
