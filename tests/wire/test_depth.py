"""Documents that nest too deep are read without what is too deep."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.model.errors import InvalidObjectError
from driver.model.resourceclaim import ResourceClaim
from driver.wire.decode import decode
from driver.wire.depth import MAX_DEPTH, shallow

DEEP = b"[" * 5000 + b"]" * 5000
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda part: st.lists(part) | st.dictionaries(st.text(), part),
)


@given(JSON)
def test_what_is_not_too_deep_stays_as_it_is(value: object) -> None:
    """Brackets and quotes inside of texts included."""
    document = json.dumps(value).encode()
    assert shallow(document) == document


@given(JSON, JSON)
def test_what_stands_beside_a_deep_part_stays(before: object, after: object) -> None:
    """Only the deep part is cut, at the same depth wherever it stands."""
    first, last = json.dumps(before).encode(), json.dumps(after).encode()
    cut = json.loads(shallow(b'{"a":%b,"b":%b,"c":%b}' % (first, DEEP, last)))
    assert (cut["a"], cut["c"]) == (before, after)
    depth = 1
    while cut["b"] is not None:
        (cut["b"],) = cut["b"]
        depth += 1
    assert depth == MAX_DEPTH


@pytest.mark.parametrize("place", ["parameters", "unknown"])
def test_a_claim_with_deep_parameters_can_be_read(place: str) -> None:
    """Anybody may create one, and the API server takes it."""
    config = b'{"opaque":{"driver":"d","%b":%b}}' % (place.encode(), DEEP)
    spec = b'{"devices":{"requests":[{"name":"gpu"}],"config":[%b]}}' % config
    claim = decode(ResourceClaim, b'{"spec":%b,"metadata":{"name":"c"}}' % spec)
    assert claim.metadata.name == "c"
    assert [request.name for request in claim.spec.devices.requests] == ["gpu"]


def test_an_endless_nest_is_an_error_like_any_other() -> None:
    """It is no JSON, so there is nothing to be read."""
    with pytest.raises(InvalidObjectError):
        decode(ResourceClaim, b'{"a":' + b"[" * 5000)
