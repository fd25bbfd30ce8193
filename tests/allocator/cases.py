"""The handed allocator cases: read them, run them in first-fit order, say what differs.

The format is described in `../shared/cases/allocator/README.md`.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from driver.allocator.allocate import allocate
from driver.allocator.outcome import Allocated, Unsatisfiable
from driver.allocator.problem import Problem
from driver.model.allocation import DeviceUse, Features
from driver.model.core import Node
from driver.model.deviceclass import DeviceClass
from driver.model.errors import AllocationError
from driver.model.ids import DeviceId
from driver.model.quantity import Quantity, parse
from driver.model.resourceclaim import AllocationResult, ResourceClaim
from driver.model.resourceslice import ResourceSlice
from driver.wire.decode import convert
from tests.allocator.build import visible_pools

Raw = Mapping[str, Any]


class Case(msgspec.Struct, frozen=True):
    """One case as it stands in the file."""

    name: str
    group: str
    features: dict[str, bool]
    node: dict[str, Any]
    claims: list[dict[str, Any]]
    classes: list[dict[str, Any]]
    slices: list[dict[str, Any]]
    allocated_devices: list[dict[str, str]]
    allocated_shared_devices: list[dict[str, str]]
    allocated_capacity: list[dict[str, Any]]
    expected: list[dict[str, Any]]
    expected_results_order: list[str]
    expect_error: dict[str, Any] | None
    outcome: str


def handed() -> Path:
    """Where the handed cases are; they are no part of this repository."""
    beside = Path(__file__).resolve().parents[3] / "shared"
    return Path(os.environ.get("QUADRANT_SHARED", beside)) / "cases" / "allocator" / "cases.json"


def load(path: Path) -> list[Case]:
    """All cases of a file."""
    return msgspec.json.decode(path.read_bytes(), type=list[Case])


def problem_of(case: Case) -> Problem:
    """The case as the allocator is asked."""
    features = features_of(case.features)
    node = convert(Node, case.node)
    slices = [convert(ResourceSlice, one) for one in case.slices]
    classes = [convert(DeviceClass, one) for one in case.classes]
    return Problem(
        node=node,
        claims=tuple(convert(ResourceClaim, one) for one in case.claims),
        classes={one.metadata.name: one for one in classes},
        pools=visible_pools(slices, node, features),
        usage=_usage(case),
        features=features,
    )


def features_of(switched: Mapping[str, bool]) -> Features:
    """The features by the names of Kubernetes' allocator."""
    snake = {
        "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_"): on
        for name, on in switched.items()
    }
    return Features(**snake)


def _usage(case: Case) -> dict[DeviceId, DeviceUse]:
    usage: dict[DeviceId, DeviceUse] = {}

    def change(one: Raw, **changed: object) -> None:
        device = DeviceId(one["driver"], one["pool"], one["device"])
        usage[device] = msgspec.structs.replace(usage.get(device, DeviceUse()), **changed)

    for one in case.allocated_devices:
        change(one, exclusive=True)
    for one in case.allocated_shared_devices:
        change(one, shares=frozenset((one["shareID"],)))
    for entry in case.allocated_capacity:
        amounts = entry["consumedCapacity"].items()
        change(entry, consumed={name: parse(text) for name, text in amounts})
    return usage


def differences(case: Case) -> list[str]:
    """What differs from what Kubernetes' own allocator returns; empty when nothing does."""
    try:
        outcome = allocate(problem_of(case))
    except AllocationError as error:
        return _error_differs(case, str(error))
    if case.expect_error is not None:
        return [f"expected an error with {case.expect_error['text']}, got {_shown(outcome)}"]
    if isinstance(outcome, Unsatisfiable):
        return [f"expected {case.expected}, got unsatisfiable"] if case.expected else []
    if case.outcome != "allocated":
        return [] if not outcome.allocations else [f"expected nothing, got {_shown(outcome)}"]
    return list(_allocations_differ(case, outcome.allocations))


def _error_differs(case: Case, error: str) -> list[str]:
    if case.expect_error is None:
        return [f"expected {case.outcome}, got the error: {error}"]
    missing = [text for text in case.expect_error["text"] if text not in error]
    return [f"expected an error with {text!r}, got: {error}" for text in missing]


def _shown(outcome: Allocated | Unsatisfiable) -> object:
    return outcome.allocations if isinstance(outcome, Allocated) else "unsatisfiable"


def _allocations_differ(case: Case, got: tuple[AllocationResult, ...]) -> Iterator[str]:
    if len(got) != len(case.expected):
        yield f"expected {len(case.expected)} allocations, got {len(got)}"
        return
    both = zip(case.expected, got, case.expected_results_order, strict=True)
    for number, (raw, actual, order) in enumerate(both):
        wanted = _comparable(convert(AllocationResult, raw), order)
        found = _comparable(actual, order)
        if wanted != found:
            yield f"claim #{number}: expected {wanted}, got {found}"


def _comparable(allocation: AllocationResult, order: str) -> object:
    results = [_plain(result) for result in allocation.devices.results]
    selector = _plain(allocation.node_selector)
    config = _plain(allocation.devices.config)
    if order == "any":
        return _unordered({"results": results, "selector": selector, "config": config})
    return {"results": results, "selector": selector, "config": config}


def _plain(value: object) -> Any:
    def write(one: object) -> object:
        if isinstance(one, Quantity):
            return str(one)
        raise NotImplementedError

    plain = msgspec.json.decode(msgspec.json.encode(value, enc_hook=write))
    if isinstance(plain, dict) and "shareID" in plain:
        plain["shareID"] = "set"
    return plain


def _unordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unordered(one) for key, one in value.items()}
    if isinstance(value, list):
        return sorted((_unordered(one) for one in value), key=msgspec.json.encode)
    return value
