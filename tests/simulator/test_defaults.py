"""What the API server fills in."""

from typing import Any

import pytest

from driver.simulator.defaults import defaulted


def _claim(request: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "ResourceClaim", "spec": {"devices": {"requests": [request]}}}


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (
            {"name": "r", "exactly": {"deviceClassName": "c"}},
            {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1},
        ),
        (
            {"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "All"}},
            {"deviceClassName": "c", "allocationMode": "All"},
        ),
        (
            {"name": "r", "exactly": {"count": 3, "tolerations": [{"key": "k"}]}},
            {
                "allocationMode": "ExactCount",
                "count": 3,
                "tolerations": [{"key": "k", "operator": "Equal"}],
            },
        ),
    ],
)
def test_requests(request_: dict[str, Any], expected: dict[str, Any]) -> None:
    """A count of one unless the mode is All; in a template just as well."""
    found = defaulted(_claim(request_))
    assert found["spec"]["devices"]["requests"][0]["exactly"] == expected
    template = {"kind": "ResourceClaimTemplate", "spec": {"spec": _claim(request_)["spec"]}}
    assert defaulted(template)["spec"] == {"spec": found["spec"]}


def test_alternatives() -> None:
    """Every one of a prioritised list has its own defaults."""
    request = {"name": "r", "firstAvailable": [{"name": "a"}, {"name": "b", "count": 2}]}
    found = defaulted(_claim(request))["spec"]["devices"]["requests"][0]["firstAvailable"]
    assert [one["count"] for one in found] == [1, 2]


def test_pods() -> None:
    """A limit is also a request, where there is none; the original stays as it was."""
    resources = {"limits": {"nvidia.com/gpu": 1, "cpu": "2"}, "requests": {"cpu": "1"}}
    pod = {"kind": "Pod", "spec": {"containers": [{"name": "c", "resources": resources}]}}
    found = defaulted(pod)["spec"]
    assert found["containers"][0]["resources"]["requests"] == {"nvidia.com/gpu": 1, "cpu": "1"}
    assert found["schedulerName"] == "default-scheduler"
    assert resources["requests"] == {"cpu": "1"}


def test_other_kinds_stay_as_they_are() -> None:
    """Nothing is filled in where placement does not depend on it."""
    assert defaulted({"kind": "Namespace"}) == {"kind": "Namespace"}
