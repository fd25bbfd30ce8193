"""Which of two choices on one node a policy of the GPU axis prefers."""

import pytest
from msgspec.structs import replace

from driver.model.names import MEMORY
from driver.policy.registry import objective
from driver.policy.view import Choice, NodeView
from tests.policy.views import node, partly, share, take, whole


def _prefers(policy: str, view: NodeView, better: Choice, worse: Choice) -> bool:
    scoring = objective(policy)
    assert scoring is not None
    return scoring.rank(view, better) > scoring.rank(view, worse)


_SHARED = node(partly(0, 0), partly(1, 50), partly(2, 30), partly(3, 70))
# Group a: one of four free. Group b: two of four. Group c: all four.
_GROUPS = node(
    *(whole(index, group="a", held=index > 0) for index in range(4)),
    *(whole(index, group="b", held=index > 5) for index in range(4, 8)),
    *(whole(index, group="c") for index in range(8, 12)),
)
_LINKED = node(
    whole(0, group="a", root="p0"),
    whole(1, group="a", root="p0"),
    whole(2, group="a", root="p1"),
    whole(3, root="p1"),
    whole(4, root="p2"),
)
# Below one root two cards on one switch, one on another switch, and one on none; and a linked pair.
_SWITCHED = node(
    whole(0, switch="s0", root="p0"),
    whole(1, switch="s1", root="p0"),
    whole(2, switch="s0", root="p0"),
    whole(3, root="p0"),
    whole(4, group="a"),
    whole(5, group="a"),
)


@pytest.mark.parametrize(
    ("policy", "view", "better", "worse"),
    [
        pytest.param("compact", _SHARED, share(3), share(1), id="the fullest"),
        pytest.param("compact", _SHARED, share(2), share(0), id="none is opened"),
        pytest.param("compact", _SHARED, share(0, 0), share(0, 2), id="two on one"),
        pytest.param("compact", _GROUPS, take(0), take(4), id="group with fewest free"),
        pytest.param("compact", _GROUPS, take(4), take(8), id="no whole group is broken"),
        pytest.param("compact", _GROUPS, take(4, 5), take(0, 4), id="within one group"),
        pytest.param("compact", _GROUPS, take(4, 5), take(8, 9), id="smallest that holds two"),
        pytest.param("compact", _GROUPS, take(8, 9, 10), take(0, 4, 5), id="three in one"),
        pytest.param("spread", _SHARED, share(0), share(2), id="the emptiest"),
        pytest.param("spread", _SHARED, share(1, 2), share(1, 1), id="two apart"),
        pytest.param("spread", _GROUPS, take(8), take(4), id="group with most free"),
        pytest.param("spread", _GROUPS, take(4, 8), take(8, 9), id="over groups"),
        pytest.param("topology", _LINKED, take(0, 2), take(2, 3), id="NVLink before PCIe"),
        pytest.param("topology", _LINKED, take(2, 3), take(3, 4), id="PCIe before nothing"),
        pytest.param("topology", _SWITCHED, take(0, 2), take(0, 1), id="switch before root"),
        pytest.param("topology", _SWITCHED, take(0, 1), take(0, 4), id="root before nothing"),
        pytest.param("topology", _SWITCHED, take(4, 5), take(0, 2), id="NVLink before switch"),
        pytest.param(
            "topology", _SWITCHED, take(3), take(0), id="alone: not beside one on a switch"
        ),
        pytest.param("topology", _LINKED, take(4), take(0), id="alone: worst connected"),
        pytest.param("topology", _LINKED, take(4), take(3), id="alone: not beside a mate"),
        pytest.param("hami", _SHARED, share(3), share(0), id="hami packs"),
        pytest.param("hami-spread", _SHARED, share(0), share(3), id="hami spreads"),
    ],
)
def test_preferences(policy: str, view: NodeView, better: Choice, worse: Choice) -> None:
    """The better choice ranks higher."""
    assert _prefers(policy, view, better, worse)


@pytest.mark.parametrize("policy", ["compact", "spread", "topology", "hami"])
def test_terms_add_up_and_the_total_decides(policy: str) -> None:
    """What is explained is what was compared."""
    scoring = objective(policy)
    assert scoring is not None
    score = scoring.score(_SHARED, share(1, 2))
    assert score.total == sum(term.points for term in score.terms)
    assert scoring.rank(_SHARED, share(1, 2)) == (round(score.total, 9),)


def test_fullness_counts_the_request() -> None:
    """A small card that the request fills is fuller than a big one, though both are empty."""
    view = node(partly(0, 0), partly(1, 0))
    assert _prefers("compact", view, share(0, memory=90), share(1, memory=45))


def test_small_shares_count_too() -> None:
    """A hundred MiB of a card with 16 GiB is little, but it is not nothing."""
    view = node(partly(0, 0), partly(1, 0))
    view = node(*(replace(one, capacity={MEMORY: 16_384}) for one in view.devices))
    used = node(replace(view.devices[0], used={MEMORY: 100}, shares=1), view.devices[1])
    assert _prefers("spread", used, share(1, memory=100), share(0, memory=100))
    assert _prefers("compact", used, share(0, memory=100), share(1, memory=100))


def test_a_later_policy_breaks_the_ties_of_an_earlier_one() -> None:
    """Compact alone has no opinion on two free pairs; topology knows the linked one."""
    view = node(whole(0, root="p0"), whole(1, root="p1"), whole(2, root="p2"), whole(3, root="p2"))
    compact, both = objective("compact"), objective("compact, topology")
    assert compact is not None
    assert both is not None
    assert compact.rank(view, take(0, 1)) == compact.rank(view, take(2, 3))
    assert both.rank(view, take(0, 1)) < both.rank(view, take(2, 3))


@pytest.mark.parametrize(
    ("view", "points"),
    [
        pytest.param(node(whole(0), whole(1)), 0, id="no links at all"),
        pytest.param(node(whole(0, group="a"), whole(1, group="b")), 0, id="groups of one"),
        pytest.param(node(*(whole(i, group=g) for i, g in enumerate("abb"))), -0.001, id="groups"),
    ],
)
def test_groups_are_split_only_where_there_are_groups(view: NodeView, points: float) -> None:
    """A term that counts something must not speak of what the node does not have."""
    scoring = objective("compact")
    assert scoring is not None
    terms = {term.name: term.points for term in scoring.score(view, take(0, 1)).terms}
    assert terms["NVLink groups split"] == points
