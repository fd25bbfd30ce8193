"""What a JSON patch (RFC 6902) makes of a document, as the API server applies one.

Knows the four operations that webhooks of this project use; others are refused.
"""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from driver.model.errors import QuadrantError


class PatchError(QuadrantError):
    """An operation that cannot be applied; the API server refuses the whole request then."""


def patched(document: Mapping[str, Any], operations: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """A copy of the document with all operations applied; raises `PatchError`."""
    result = copy.deepcopy(dict(document))
    for operation in operations:
        *parents, last = _parts(operation["path"])
        try:
            _apply(operation, _descend(result, parents), last)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise PatchError(
                f"patch operation {operation['op']} {operation['path']} does not apply: "
                f"there is no such place ({error})"
            ) from error
    return result


def _parts(path: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _descend(document: Any, parts: Iterable[str]) -> Any:
    for part in parts:
        document = document[int(part)] if isinstance(document, list) else document[part]
    return document


def _apply(operation: Mapping[str, Any], parent: Any, name: str) -> None:
    key: Any = _index(parent, name) if isinstance(parent, list) else name
    match operation["op"]:
        case "add" if isinstance(parent, list):
            parent.insert(key, copy.deepcopy(operation["value"]))
        case "add":
            parent[key] = copy.deepcopy(operation["value"])
        case "remove":
            del parent[key]
        case "replace":
            # What is to be replaced has to be there.
            del parent[key]
            _apply({**operation, "op": "add"}, parent, name)
        case "test":
            if parent[key] != operation["value"]:
                raise PatchError(
                    f"patch operation test {operation['path']} fails: found {parent[key]!r}, "
                    f"expected {operation['value']!r}"
                )
        case other:
            raise PatchError(
                f"patch operation {other!r} is not known: expected add, remove, replace or test"
            )


def _index(items: list[Any], name: str) -> int:
    index = len(items) if name == "-" else int(name)
    if not 0 <= index <= len(items):
        raise IndexError(f"index {index} of {len(items)}")
    return index
