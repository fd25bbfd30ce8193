"""Fields that our structs do not name are found wherever they stand."""

from typing import Any

import pytest

from driver.model.resourceclaim import ResourceClaim
from driver.wire.unknown import unknown_in

EXACTLY = {"deviceClassName": "gpu", "capacity": {"requests": {"memory": "1Gi", "other": "2"}}}


def claim(*requests: dict[str, Any], **devices: Any) -> dict[str, Any]:
    """A claim as a parsed document."""
    return {"metadata": {}, "spec": {"devices": {"requests": list(requests), **devices}}}


@pytest.mark.parametrize(
    ("document", "unknown"),
    [
        ({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"} | claim(), ()),
        (claim({"name": "a", "exactly": EXACTLY}), ()),
        (claim() | {"news": 1}, (".news",)),
        (claim(news={"deep": 1}), (".spec.devices.news",)),
        (claim({"kind": "a"}), (".spec.devices.requests[0].kind",)),
        (
            claim({"name": "a"}, {"exactly": EXACTLY | {"news": []}}),
            (".spec.devices.requests[1].exactly.news",),
        ),
        (
            claim({"firstAvailable": [EXACTLY, {"x": 1, "y": 2}]}),
            tuple(f".spec.devices.requests[0].firstAvailable[1].{name}" for name in "xy"),
        ),
        (
            claim({"exactly": {"capacity": {"requests": {}, "limits": {}}}}),
            (".spec.devices.requests[0].exactly.capacity.limits",),
        ),
    ],
)
def test_unknown_fields_are_named(document: dict[str, Any], unknown: tuple[str, ...]) -> None:
    """The path of every unknown field is told; keys of maps are no fields."""
    assert unknown_in(ResourceClaim, document) == unknown


def test_metadata_is_open() -> None:
    """What stands in metadata says nothing of what is asked for."""
    assert unknown_in(ResourceClaim, {"metadata": {"news": {"a": [1]}}}) == ()
