"""HAMi's resources of one container, rule by rule (docs/hami.md)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.controller import translate
from driver.controller.translate import Ask, ImpossibleRequestError, ResourceNames
from tests.controller.podsamples import CORES, GPU, MEMORY, PERCENTAGE, PRIORITY, container

NAMES = ResourceNames()
WHOLE = Ask(count=1)


def read(limits: dict[str, Any], **others: Any) -> Ask | None:
    """What a container with these limits asks for."""
    return translate.read(container("main", limits, **others), NAMES)


@pytest.mark.parametrize(
    ("limits", "ask"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param({"cpu": "1"}, None, id="only what is not ours"),
        pytest.param({GPU: "1"}, WHOLE, id="a whole card"),
        pytest.param({GPU: 2}, Ask(count=2), id="a number in place of a string"),
        pytest.param({GPU: "1", PRIORITY: "1"}, WHOLE, id="a priority takes nothing"),
        pytest.param({PRIORITY: "1"}, None, id="a priority alone"),
        pytest.param({GPU: "0"}, None, id="no card"),
        pytest.param({GPU: "0", MEMORY: "100"}, None, id="no card, whatever else"),
        pytest.param({GPU: "1", MEMORY: "7500"}, Ask(memory_mib=7500, cores=0), id="memory"),
        pytest.param({MEMORY: "7500"}, Ask(memory_mib=7500, cores=0), id="memory alone is 1 card"),
        pytest.param({MEMORY: "1k"}, Ask(memory_mib=1000, cores=0), id="a suffix"),
        pytest.param({GPU: "1", MEMORY: "0"}, WHOLE, id="no memory means all of it"),
        pytest.param({CORES: "30"}, Ask(cores=30), id="cores alone are 1 card, all memory"),
        pytest.param({GPU: "1", CORES: "100"}, WHOLE, id="all cores and all memory"),
        pytest.param({GPU: "1", CORES: "0"}, WHOLE, id="all memory leaves nothing to share"),
        pytest.param(
            {MEMORY: "10", CORES: "0"}, Ask(memory_mib=10, cores=0), id="cores not limited"
        ),
        pytest.param({MEMORY: "10", CORES: "100"}, Ask(memory_mib=10, cores=100), id="all cores"),
        pytest.param({GPU: "2", PERCENTAGE: "100"}, Ask(count=2), id="100 % is whole"),
        pytest.param({GPU: "1", PERCENTAGE: "0"}, WHOLE, id="0 % is not set"),
        pytest.param({PERCENTAGE: "45"}, Ask(memory_percentage=45, cores=0), id="a percentage"),
        pytest.param(
            {PERCENTAGE: "45", MEMORY: "500"}, Ask(memory_mib=500, cores=0), id="memory goes first"
        ),
        pytest.param(
            {PERCENTAGE: "45", MEMORY: "0"},
            Ask(memory_percentage=45, cores=0),
            id="memory that is not set does not",
        ),
    ],
)
def test_means(limits: dict[str, Any], ask: Ask | None) -> None:
    """Defaults and precedence are HAMi's."""
    assert read(limits) == ask


@pytest.mark.parametrize(
    ("limits", "requests", "ask"),
    [
        ({GPU: "1"}, {}, WHOLE),
        ({}, {GPU: "1"}, WHOLE),
        ({GPU: "1"}, {MEMORY: "5"}, Ask(memory_mib=5, cores=0)),
        ({GPU: "1000m"}, {GPU: "1"}, WHOLE),
    ],
)
def test_limits_and_requests(
    limits: dict[str, Any], requests: dict[str, Any], ask: Ask | None
) -> None:
    """A resource may stand in either list, or in both with one amount."""
    assert read(limits, requests=requests) == ask


@pytest.mark.parametrize(
    ("limits", "requests", "says"),
    [
        pytest.param({PERCENTAGE: "101"}, {}, "from 0 to 100", id="percentage"),
        pytest.param({CORES: "101"}, {}, "from 0 to 100", id="cores"),
        pytest.param({GPU: "33"}, {}, "from 0 to 32", id="cards"),
        pytest.param({MEMORY: "2147483648"}, {}, "from 0 to 2147483647", id="memory"),
        pytest.param({GPU: "1", CORES: "-1"}, {}, "not negative", id="negative"),
        pytest.param({GPU: "500m"}, {}, "whole number", id="half a card"),
        pytest.param({MEMORY: "some"}, {}, "cannot be read", id="no number"),
        pytest.param({MEMORY: None}, {}, "cannot be read", id="null"),
        pytest.param({GPU: "1"}, {GPU: "2"}, "must be equal", id="limit and request differ"),
    ],
)
def test_refuses(limits: dict[str, Any], requests: dict[str, Any], says: str) -> None:
    """What can never be given is refused, with the container and what is possible."""
    with pytest.raises(ImpossibleRequestError, match=says) as raised:
        read(limits, requests=requests)
    assert "'main'" in str(raised.value)


def test_other_names() -> None:
    """The names of the resources are a setting."""
    names = ResourceNames(count="example.com/card", memory="example.com/mem")
    asked = container("main", {"example.com/card": "2", "example.com/mem": "5", GPU: "7"})
    assert translate.read(asked, names) == Ask(count=2, memory_mib=5, cores=0)


def test_no_resources_at_all() -> None:
    """Absent and null lists are empty ones."""
    for resources in ({}, {"resources": None}, {"resources": {"limits": None}}):
        assert translate.read({"name": "main", **resources}, NAMES) is None


@pytest.mark.parametrize(
    ("ask", "other", "covers"),
    [
        (Ask(), Ask(memory_mib=5, cores=0), True),
        (Ask(count=2), Ask(count=1), False),
        (Ask(memory_mib=5, cores=0), Ask(memory_mib=5, cores=0), True),
        (Ask(memory_mib=4, cores=50), Ask(memory_mib=5, cores=50), False),
        (Ask(memory_mib=5, cores=40), Ask(memory_mib=5, cores=50), False),
        (Ask(memory_mib=5, cores=50), Ask(cores=50), False),
        (Ask(memory_percentage=50, cores=0), Ask(memory_percentage=40, cores=0), True),
        (Ask(memory_percentage=50, cores=0), Ask(memory_mib=1, cores=0), False),
        (Ask(cores=50), Ask(), False),
    ],
)
def test_covers(ask: Ask, other: Ask, covers: bool) -> None:  # a table's column
    """One request can serve another container only when no part of it is smaller."""
    assert ask.covers(other) is covers


amounts = st.none() | st.integers(0, 100)
asks = st.builds(
    Ask,
    count=st.integers(1, 3),
    memory_mib=amounts,
    cores=amounts,
    memory_percentage=amounts,
)


@given(asks, asks, asks)
def test_covering_is_an_order(first: Ask, second: Ask, third: Ask) -> None:
    """Everything covers itself, and what covers a cover covers what that covers."""
    assert first.covers(first)
    if first.covers(second) and second.covers(third):
        assert first.covers(third)
