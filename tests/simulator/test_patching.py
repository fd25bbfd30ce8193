"""What a JSON patch makes of a document."""

from typing import Any

import pytest

from driver.simulator.patching import PatchError, patched

DOCUMENT = {"a": {"b/c": [1, 2]}, "n": None}


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "add", "path": "/a/new", "value": 3}, {"a": {"b/c": [1, 2], "new": 3}, "n": None}),
        ({"op": "add", "path": "/a/b~1c/0", "value": 0}, {"a": {"b/c": [0, 1, 2]}, "n": None}),
        ({"op": "add", "path": "/a/b~1c/-", "value": 3}, {"a": {"b/c": [1, 2, 3]}, "n": None}),
        ({"op": "replace", "path": "/a/b~1c/1", "value": 9}, {"a": {"b/c": [1, 9]}, "n": None}),
        ({"op": "replace", "path": "/n", "value": 1}, {"a": {"b/c": [1, 2]}, "n": 1}),
        ({"op": "remove", "path": "/a/b~1c/0"}, {"a": {"b/c": [2]}, "n": None}),
        ({"op": "test", "path": "/n", "value": None}, DOCUMENT),
    ],
)
def test_operations(operation: dict[str, Any], expected: dict[str, Any]) -> None:
    """Each operation does what RFC 6902 says, and the original stays as it was."""
    assert patched(DOCUMENT, [operation]) == expected
    assert DOCUMENT == {"a": {"b/c": [1, 2]}, "n": None}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "/x/y", "value": 1},
        {"op": "add", "path": "/a/b~1c/5", "value": 1},
        {"op": "replace", "path": "/x", "value": 1},
        {"op": "remove", "path": "/a/b~1c/2"},
        {"op": "test", "path": "/n", "value": 1},
        {"op": "move", "path": "/n", "from": "/a"},
    ],
)
def test_what_does_not_apply_is_refused(operation: dict[str, Any]) -> None:
    """The error names the operation and the place."""
    with pytest.raises(PatchError, match=operation["op"]):
        patched(DOCUMENT, [operation])
