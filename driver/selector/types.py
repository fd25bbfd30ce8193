"""What static types are and how they are written.

A type says what the checker knows; `dyn` is what it does not know. Values and their run time
types are the business of `values`; how types match is the business of `unify`.
"""

from typing import Final

import msgspec

from driver.selector.errors import CompileError

_MAX_SIZE = 1000


class Type(msgspec.Struct, frozen=True):
    """One type: its kind, its name, and its parameters (of a list, a map, an optional, a type).

    Raises `CompileError` when it is written with more than a thousand names: an expression may
    double a type with every step.
    """

    kind: str
    name: str
    params: tuple["Type", ...] = ()
    size: int = 0

    def __post_init__(self) -> None:
        size = 1 + sum(param.size for param in self.params)
        if size > _MAX_SIZE:
            raise CompileError("compilation failed: a type nests too deep")
        msgspec.structs.force_setattr(self, "size", size)

    def __str__(self) -> str:
        if not self.params:
            return self.name
        return f"{self.name}({', '.join(map(str, self.params))})"


def _simple(name: str) -> Type:
    return Type(name, name)


DYN: Final = _simple("dyn")
NULL: Final = Type("null", "null_type")
BOOL: Final = _simple("bool")
INT: Final = _simple("int")
UINT: Final = _simple("uint")
DOUBLE: Final = _simple("double")
STRING: Final = _simple("string")
BYTES: Final = _simple("bytes")
DURATION: Final = Type("duration", "google.protobuf.Duration")
TIMESTAMP: Final = Type("timestamp", "google.protobuf.Timestamp")

QUANTITY: Final = Type("struct", "kubernetes.Quantity")
SEMVER: Final = Type("struct", "kubernetes.Semver")
URL: Final = Type("struct", "kubernetes.URL")
FORMAT: Final = Type("struct", "kubernetes.NamedFormat")
IP: Final = Type("struct", "net.IP")
CIDR: Final = Type("struct", "net.CIDR")
DEVICE: Final = Type("struct", "kubernetes.DRADevice")

A: Final = Type("param", "A")
B: Final = Type("param", "B")


def list_of(element: Type) -> Type:
    """The type of lists of one element type."""
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """The type of maps."""
    return Type("map", "map", (key, value))


def optional_of(value: Type) -> Type:
    """The type of an optional value."""
    return Type("opaque", "optional_type", (value,))


def type_of(value: Type) -> Type:
    """The type of a type used as a value."""
    return Type("type", "type", (value,))


def is_optional(candidate: Type) -> bool:
    """Whether this is the type of an optional value."""
    return candidate.kind == "opaque" and candidate.name == "optional_type"


# The fields of a message type; the device is the only one a selector can name.
FIELDS: Final = {
    DEVICE.name: {
        "driver": STRING,
        "allowMultipleAllocations": BOOL,
        "attributes": map_of(STRING, map_of(STRING, DYN)),
        "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
    }
}

# The type names that stand for themselves in an expression.
TYPE_NAMES: Final = {
    named.name: named
    for named in (
        BOOL, INT, UINT, DOUBLE, STRING, BYTES, NULL, DURATION, TIMESTAMP,
        list_of(DYN), map_of(DYN, DYN), type_of(DYN), optional_of(DYN),
    )
}  # fmt: skip
