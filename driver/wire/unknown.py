"""Whether an object says more than we understand.

A newer Kubernetes may add a field that changes what a request means. Whoever is about to decide on
an object asks here first, and keeps away from one with unknown fields.
"""

from functools import lru_cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from driver.model.api import ObjectMeta

# Facts about the object itself, not about what it asks for.
_OPEN = {ObjectMeta}


def unknown_in(kind: type, value: Any) -> tuple[str, ...]:
    """The paths of all fields of a parsed document that `kind` does not name, in its order."""
    found: list[str] = []
    _walk(kind, value, "", found)
    return tuple(found)


class _Shape(msgspec.Struct, frozen=True):
    """What may stand in a value of one type; all three are empty where anything may."""

    fields: dict[str, Any] | None = None
    element: Any = None
    entry: Any = None


def _walk(kind: Any, value: Any, path: str, found: list[str]) -> None:
    """Add the unknown fields of a value that stands at this path."""
    shape = _shape(kind)
    if isinstance(value, dict):
        for name, item in value.items():
            part = shape.entry
            if shape.fields is not None:
                if name not in shape.fields:
                    if path or name not in ("apiVersion", "kind"):
                        found.append(f"{path}.{name}")
                    continue
                part = shape.fields[name]
            if part is not None and isinstance(item, (dict, list)):
                _walk(part, item, f"{path}.{name}", found)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, (dict, list)):
                _walk(shape.element, item, f"{path}[{index}]", found)


@lru_cache(maxsize=256)
def _shape(kind: Any) -> _Shape:
    options = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    for option in options:
        if isinstance(option, type) and issubclass(option, msgspec.Struct):
            return _Shape() if option in _OPEN else _Shape(fields=_fields(option))
    for option in options:
        if get_origin(option) is tuple:
            return _Shape(element=get_args(option)[0])
        if get_origin(option) is dict:
            return _Shape(entry=get_args(option)[1])
    return _Shape()


def _fields(struct: type[msgspec.Struct]) -> dict[str, Any]:
    hints = get_type_hints(struct)
    return {field.encode_name: hints[field.name] for field in msgspec.structs.fields(struct)}
