"""What values an evaluation works with, and what type each has at run time.

| CEL | Python | | CEL | Python |
|---|---|---|---|---|
| null | None | | list | list |
| bool, int, double, string, bytes | bool, int, float, str, bytes | | map | dict |
| uint | `Uint` | | duration, timestamp | `Duration`, `Timestamp` |
| optional | `Optional` | | type | `TypeValue` |

Lists and maps are never changed once built. Python takes True for 1 and 1 for 1.0, also as a
key, so nothing outside `equality` compares two values, and map keys go through `map_key`.
"""

from typing import Final, NamedTuple

import msgspec

from driver.selector.errors import CelError

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1


class Uint(int):
    """An unsigned integer; what is computed from one must be made one again."""

    __slots__ = ()


class Duration(msgspec.Struct, frozen=True):
    """A length of time in nanoseconds."""

    nanos: int


class Timestamp(msgspec.Struct, frozen=True):
    """A point in time, in nanoseconds since 1970-01-01T00:00:00Z."""

    nanos: int


class TypeValue(msgspec.Struct, frozen=True):
    """A type as a value; two are the same when their names are."""

    name: str


class Optional(msgspec.Struct, frozen=True):
    """A value that may be absent."""

    value: object = None
    present: bool = True


ABSENT: Final = Optional(None, present=False)


class TaggedKey(NamedTuple):
    """A bool or uint as a map key, kept apart from the int that Python takes it for."""

    kind: str
    value: object


def map_key(value: object) -> object:
    """The key under which a map holds this value; raises `CelError` for what can be no key."""
    kind = type(value)
    if kind is str or kind is int:
        return value
    if kind is bool:
        return TaggedKey("bool", value)
    if kind is Uint:
        return TaggedKey("uint", value)
    raise CelError(f"unsupported key type: {type_name(value)}")


def key_value(key: object) -> object:
    """The value that a map key stands for: the reverse of `map_key`."""
    return key.value if type(key) is TaggedKey else key


_NAMES: dict[type, str] = {
    type(None): "null_type",
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    TypeValue: "type",
    Optional: "optional_type",
}


def type_name(value: object) -> str:
    """The name of the value's run time type."""
    if isinstance(value, dict):
        return "map"
    return _NAMES.get(type(value)) or str(getattr(value, "cel_type", "dyn"))


def int64(value: int) -> int:
    """The value itself when it fits a signed 64 bit integer."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise CelError("integer overflow")


def uint64(value: int) -> Uint:
    """The value as an unsigned 64 bit integer, when it fits."""
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise CelError("unsigned integer overflow")


def size_of(value: object) -> int:
    """What cost accounting takes for the size of a value: code points, bytes, entries, or 1."""
    if isinstance(value, (str, bytes, list, dict)):
        return len(value)
    return 1
