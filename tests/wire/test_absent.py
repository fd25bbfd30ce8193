"""Null is as good as nothing, wherever the API server writes it."""

import json

import pytest

from driver.model.errors import InvalidObjectError
from driver.model.resourceclaim import ResourceClaim
from driver.wire.decode import decode


def read(spec: object, **more: object) -> ResourceClaim:
    """A claim with this spec, as JSON that is read."""
    return decode(ResourceClaim, json.dumps({"metadata": {"name": "c"}, "spec": spec, **more}))


def test_a_claim_that_asks_for_nothing_can_be_read() -> None:
    """1.37.2 stores `devices: {}`, and shows it like this; a pod that has it must not wait."""
    assert read({"devices": {"requests": None}}) == read({"devices": {}})


def test_null_does_not_help_a_wrong_value_over() -> None:
    """The place in the document is still named."""
    with pytest.raises(InvalidObjectError, match="requests"):
        read({"devices": {"requests": 7, "constraints": None}})


def test_null_before_what_nests_too_deep() -> None:
    """Two reasons at once: whichever is met first, the object is read."""
    deep = b"[" * 5000 + b"]" * 5000
    parts = (b'"requests":null', b'"config":[{"opaque":{"driver":"d","parameters":%b}}]' % deep)
    for first, last in (parts, parts[::-1]):
        document = b'{"metadata":{"name":"c"},"spec":{"devices":{%b,%b}}}' % (first, last)
        assert len(decode(ResourceClaim, document).spec.devices.config) == 1
