"""What an expression is once read: the nodes of its tree.

Macros are nodes of their own, so that a loop is a loop for the compiler. Every node carries a
number by which the checker files what it found out. Nothing here has a meaning yet.
"""

from typing import TypeAlias

import msgspec


class Literal(msgspec.Struct, frozen=True):
    """A constant."""

    id: int
    value: object


class Ident(msgspec.Struct, frozen=True):
    """A plain name; a leading dot asks for the outermost meaning."""

    id: int
    name: str


class Select(msgspec.Struct, frozen=True, kw_only=True):
    """`operand.field`, `operand.?field` (optional) or `has(operand.field)` (test)."""

    id: int
    operand: "Node"
    field: str
    test: bool = False
    optional: bool = False


class Call(msgspec.Struct, frozen=True):
    """A function, a method (with target) or an operator by its CEL name, such as `_+_`."""

    id: int
    function: str
    target: "Node | None"
    args: tuple["Node", ...]


class ListNode(msgspec.Struct, frozen=True):
    """`[a, ?b]`; `optional` holds the positions marked with a question mark."""

    id: int
    elements: tuple["Node", ...]
    optional: frozenset[int] = frozenset()


class Entry(msgspec.Struct, frozen=True):
    """`key: value` or `?key: value`."""

    key: "Node"
    value: "Node"
    optional: bool = False


class MapNode(msgspec.Struct, frozen=True):
    """`{key: value}`."""

    id: int
    entries: tuple[Entry, ...]


class Field(msgspec.Struct, frozen=True):
    """`name: value` inside of a message."""

    name: str
    value: "Node"


class StructNode(msgspec.Struct, frozen=True):
    """`type.Name{field: value}`."""

    id: int
    name: str
    fields: tuple[Field, ...]


class Fold(msgspec.Struct, frozen=True, kw_only=True):
    """A macro that walks over a list or map.

    `kind` is the macro's name; with one variable that is a list's element or a map's key, with
    two the index or key and the element or value. `condition` is the optional filter.
    """

    id: int
    kind: str
    range: "Node"
    variables: tuple[str, ...]
    body: "Node"
    condition: "Node | None" = None


class Bind(msgspec.Struct, frozen=True, kw_only=True):
    """`cel.bind(name, value, body)`: the value is worked out when first used."""

    id: int
    name: str
    value: "Node"
    body: "Node"


class OptMap(msgspec.Struct, frozen=True, kw_only=True):
    """`target.optMap(name, body)`, or `optFlatMap` when the body gives an optional itself."""

    id: int
    target: "Node"
    name: str
    body: "Node"
    flat: bool


Node: TypeAlias = (
    Literal | Ident | Select | Call | ListNode | MapNode | StructNode | Fold | Bind | OptMap
)
