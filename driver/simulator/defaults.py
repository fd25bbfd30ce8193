"""What the API server fills in where a manifest says nothing.

Only what placement depends on. Source: `pkg/apis/resource/v1/defaults.go` and
`pkg/apis/core/v1/defaults.go`, 1.37.
"""

import copy
from collections.abc import Iterator, Mapping
from typing import Any


def defaulted(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a raw object with the defaults of its kind, if it has any."""
    result = copy.deepcopy(dict(raw))
    match result["kind"]:
        case "ResourceClaim":
            _claim(result["spec"])
        case "ResourceClaimTemplate":
            _claim(result["spec"]["spec"])
        case "Pod":
            _pod(result["spec"])
    return result


def _claim(spec: dict[str, Any]) -> None:
    for request in _requests(spec):
        if request.setdefault("allocationMode", "ExactCount") == "ExactCount":
            request.setdefault("count", 1)
        for toleration in request.get("tolerations") or ():
            toleration.setdefault("operator", "Equal")


def _requests(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for request in (spec.get("devices") or {}).get("requests") or ():
        if "exactly" in request:
            yield request["exactly"]
        yield from request.get("firstAvailable") or ()


def _pod(spec: dict[str, Any]) -> None:
    spec.setdefault("schedulerName", "default-scheduler")
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        resources = container.get("resources") or {}
        limits = resources.get("limits")
        if limits:
            resources["requests"] = {**limits, **(resources.get("requests") or {})}
