"""Names of policies and weights, as users write them."""

import pytest

from driver.policy.registry import PolicyError, node_scorer, objective
from driver.policy.weights import Weights, WeightsError, parse
from tests.policy.views import node, partly, share


@pytest.mark.parametrize("build", [objective, node_scorer])
def test_none_means_that_the_scheduler_decides(build: object) -> None:
    """There is no policy then, on either axis."""
    assert objective("none") is None
    assert node_scorer(" none ") is None


def test_binpack_is_compact() -> None:
    """HAMi's word is understood."""
    binpack, compact = objective("binpack"), objective("compact")
    assert binpack is not None
    assert compact is not None
    view = node(partly(0, 10), partly(1, 50))
    assert binpack.rank(view, share(1)) == compact.rank(view, share(1))


@pytest.mark.parametrize("names", ["pack", "", "compact,", "compact,none", "compact,pack"])
def test_an_unknown_name_is_refused_with_the_known_ones(names: str) -> None:
    """The sentence says which word is wrong and what is known."""
    with pytest.raises(PolicyError, match="expected compact, spread, topology"):
        objective(names)
    with pytest.raises(PolicyError, match="node policy"):
        node_scorer(names)


def test_weights_are_read_as_hami_writes_them() -> None:
    """What is not named weighs one."""
    assert parse("slot=1,core=1,memory=3") == Weights(1, 1, 3)
    assert parse(" memory = 0.5 ") == Weights(1, 1, 0.5)
    assert parse(" ") is None


@pytest.mark.parametrize(
    "text",
    ["memory", "memory=x", "disk=1", "core=-1", "core=nan", "core=inf"],
)
def test_weights_that_make_no_sense_are_refused(text: str) -> None:
    """The sentence shows what was expected."""
    with pytest.raises(WeightsError, match="slot=1,core=1,memory=3"):
        parse(text)


def test_weights_that_are_all_zero_are_refused() -> None:
    """Nothing would count, and the order of devices would decide alone."""
    with pytest.raises(WeightsError, match="all zero"):
        parse("slot=0,core=0,memory=0")


def test_weights_change_what_full_means() -> None:
    """Without weights memory decides here; with all weight on slots the number of shares does."""
    view = node(partly(0, 60, shares=1), partly(1, 40, shares=5))
    plain, by_slots = objective("compact"), objective("compact", weights=Weights(1, 0, 0))
    assert plain is not None
    assert by_slots is not None
    assert plain.rank(view, share(0)) > plain.rank(view, share(1))
    assert by_slots.rank(view, share(0)) < by_slots.rank(view, share(1))
