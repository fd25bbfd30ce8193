"""The patches that an API server takes, as far as tests need them, on plain JSON values."""

import copy
from typing import Any


class PatchError(Exception):
    """The patch does not fit the object."""


def json_patch(document: Any, operations: list[dict[str, Any]]) -> Any:
    """RFC 6902 without move and copy."""
    document = copy.deepcopy(document)
    for operation in operations:
        *parents, last = [
            part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]
        ]
        place = document
        for part in parents:
            place = _at(place, part)
        _operate(place, last, operation)
    return document


def _at(place: Any, part: str) -> Any:
    try:
        return place[int(part)] if isinstance(place, list) else place[part]
    except (KeyError, IndexError, ValueError) as error:
        raise PatchError(f"nothing at {part!r}") from error


def _operate(place: Any, last: str, operation: dict[str, Any]) -> None:
    op = operation["op"]
    if op == "add" and isinstance(place, list):
        place.insert(len(place) if last == "-" else int(last), operation["value"])
        return
    if op != "add":
        found = _at(place, last)
        if op == "test" and found != operation["value"]:
            raise PatchError(f"test failed at {operation['path']}")
    index: Any = int(last) if isinstance(place, list) else last
    if op in ("add", "replace"):
        place[index] = operation["value"]
    elif op == "remove":
        del place[index]


def merge_patch(document: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    merged = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


MERGE_KEYS = ("uid", "name", "type")


def strategic_patch(document: Any, patch: Any) -> Any:
    """A merge patch in which lists merge by uid, name or type; `$patch: delete` removes."""
    if isinstance(patch, list) and patch and isinstance(patch[0], dict):
        return _merge_list(document if isinstance(document, list) else [], patch)
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    merged = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = strategic_patch(merged.get(name), value)
    return merged


def _merge_list(items: list[Any], patch: list[dict[str, Any]]) -> list[Any]:
    key = next((name for name in MERGE_KEYS if name in patch[0]), None)
    if key is None:
        return copy.deepcopy(patch)
    merged = {item[key]: item for item in items}
    for item in patch:
        if item.get("$patch") == "delete":
            merged.pop(item[key], None)
        else:
            merged[item[key]] = strategic_patch(merged.get(item[key]), item)
    return list(merged.values())
