"""Whether an object says more than we understand.

A newer Kubernetes may add a field that changes what a request means. Whoever is about to decide on
an object asks here first, and keeps away from one with unknown fields.
"""

from collections.abc import Iterator
from functools import lru_cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from driver.model.api import ObjectMeta

# Facts about the object itself, not about what it asks for.
_OPEN = {ObjectMeta}


def unknown_fields(kind: type, data: bytes | msgspec.Raw) -> tuple[str, ...]:
    """The paths of all fields in `data` that `kind` does not name, in document order."""
    return tuple(_walk(kind, msgspec.json.decode(data), ""))


def unknown_in(kind: type, value: Any) -> tuple[str, ...]:
    """The same for a document that is parsed already."""
    return tuple(_walk(kind, value, ""))


def _walk(kind: Any, value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        yield from _walk_mapping(kind, value, path)
    elif isinstance(value, list):
        item = _item_type(kind)
        for index, element in enumerate(value):
            yield from _walk(item, element, f"{path}[{index}]")


def _walk_mapping(kind: Any, value: dict[str, Any], path: str) -> Iterator[str]:
    struct = _struct(kind)
    if struct in _OPEN:
        return
    if struct is not None:
        fields = _fields(struct)
        for name, element in value.items():
            if name in fields:
                yield from _walk(fields[name], element, f"{path}.{name}")
            elif path or name not in ("apiVersion", "kind"):
                yield f"{path}.{name}"
        return
    if get_origin(kind) is dict:
        for name, element in value.items():
            yield from _walk(get_args(kind)[1], element, f"{path}.{name}")


def _struct(kind: Any) -> type[msgspec.Struct] | None:
    for option in _options(kind):
        if isinstance(option, type) and issubclass(option, msgspec.Struct):
            return option
    return None


def _item_type(kind: Any) -> Any:
    for option in _options(kind):
        if get_origin(option) is tuple:
            return get_args(option)[0]
    return None


def _options(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


@lru_cache(maxsize=256)
def _fields(struct: type[msgspec.Struct]) -> dict[str, Any]:
    hints = get_type_hints(struct)
    return {field.encode_name: hints[field.name] for field in msgspec.structs.fields(struct)}
