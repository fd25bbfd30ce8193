"""Scorers of others: how they are added, and what becomes of one that fails."""

import pytest

from driver.model.allocation import Score, Term
from driver.policy.foreign import ScorerError
from driver.policy.registry import Options, PolicyError, Registry
from driver.policy.view import Choice, NodeView, Scorer
from tests.policy.views import node, partly, share


class LastDevice:
    """Takes the last device; a scorer that is easily told from ours."""

    def score(self, view: NodeView, choice: Choice) -> Score:
        """The index."""
        return Score((Term("index", float(choice.taken[0].index)),))


class Returns:
    """Returns anything."""

    def __init__(self, value: object) -> None:
        self.value = value

    def score(self, view: NodeView, choice: Choice) -> Score:
        """What it was told to."""
        if isinstance(self.value, Exception):
            raise self.value
        return self.value  # type: ignore[return-value] # that is the point


def registry(scorer: Scorer) -> Registry:
    """With one policy more, by the name of last."""
    return Registry({"last": lambda _: scorer})


def test_an_added_policy_serves_both_axes_and_lists() -> None:
    """It is one like ours, and breaks ties as ours do."""
    known = registry(LastDevice())
    view = node(partly(0, 10), partly(1, 10))
    for policy in (known.objective("last"), known.node_scorer("compact,last")):
        assert policy is not None
        assert policy.rank(view, share(1)) > policy.rank(view, share(0))
    with pytest.raises(PolicyError, match=r"'first' is not known: expected .*, last"):
        known.objective("first")


@pytest.mark.parametrize("name", ["compact", "binpack", "none", "hami", "Mine", "a,b", "", "a b"])
def test_a_name_that_is_taken_or_none_is_refused(name: str) -> None:
    """Nobody's annotation changes its meaning by an installation."""
    with pytest.raises(PolicyError, match="cannot be added"):
        Registry({name: lambda _: LastDevice()})


@pytest.mark.parametrize(
    "value",
    [
        None,
        3.0,
        Score((Term("x", float("nan")),)),
        Score((Term("x", float("inf")),)),
        KeyError("k"),
    ],
)
def test_a_scorer_that_fails_says_so(value: object) -> None:
    """What is no score never gets into a comparison."""
    policy = registry(Returns(value)).objective("last")
    assert policy is not None
    with pytest.raises(ScorerError, match="policy 'last'"):
        policy.rank(node(partly(0, 10)), share(0))


def test_options_reach_the_scorer() -> None:
    """It is told the weights of the claim."""
    told: list[Options] = []

    def make(options: Options) -> LastDevice:
        told.append(options)
        return LastDevice()

    Registry({"last": make}).objective("last")
    assert told == [Options()]
