"""JSON patches (RFC 6902), the only form in which we change objects that others own as well."""

from typing import Any, TypedDict

import msgspec


class _Op(TypedDict):
    op: str
    path: str


class Operation(_Op, total=False):
    """One operation of a patch."""

    value: Any


JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


def pointer(*parts: str | int) -> str:
    """The JSON pointer (RFC 6901) to a place, with `~` and `/` escaped."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def add(path: str, value: Any) -> Operation:
    """Set a member, or insert into a list (`/-` appends)."""
    return {"op": "add", "path": path, "value": value}


def replace(path: str, value: Any) -> Operation:
    """Replace what is there; fails when nothing is."""
    return {"op": "replace", "path": path, "value": value}


def remove(path: str) -> Operation:
    """Take away what is there; fails when nothing is."""
    return {"op": "remove", "path": path}


def test(path: str, value: Any) -> Operation:
    """Fail the whole patch unless this value is there."""
    return {"op": "test", "path": path, "value": value}


def document(operations: list[Operation]) -> bytes:
    """The patch as sent."""
    return msgspec.json.encode(operations)
