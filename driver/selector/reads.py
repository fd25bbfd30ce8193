"""Which parts of a device an expression can look at, as far as its text tells.

Two devices that are the same in these parts get the same answer, at the same cost. What is not
plain to see counts as reading everything. It evaluates nothing.
"""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from driver.selector.paths import Path, device_path, step
from driver.selector.syntax import (
    Bind,
    Call,
    Fold,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    OptMap,
    Select,
    StructNode,
)

# The variables of macros: the way into the device that one stands for, None for any other value.
_Scope: TypeAlias = Mapping[str, Path | None]

_PLAIN = ("driver", "allowMultipleAllocations")
_DOMAIN, _NAME = 2, 3


class _EverythingError(Exception):
    """Some part of the expression takes a map of the device as a value."""


def reads(node: Node) -> frozenset[Path] | None:
    """The ways to all that the expression can read of a device; None: it may read everything.

    A way is `("driver",)`, `("allowMultipleAllocations",)`, or one such as
    `("attributes", "gpu.example.com", "model")`.
    """
    try:
        return frozenset(_reads(node, {}))
    except (_EverythingError, RecursionError):
        return None


def _reads(node: Node, scope: _Scope) -> Iterator[Path]:
    path = _named(node, scope)
    if path is not None:
        yield path
    elif _path(node, scope) is not None:
        raise _EverythingError
    elif isinstance(node, Bind):
        yield from _bound(node, scope)
    elif isinstance(node, OptMap):
        yield from _reads(node.target, scope)
        yield from _reads(node.body, {**scope, node.name: None})
    elif isinstance(node, Fold):
        yield from _looped(node, scope)
    else:
        for part in _parts(node):
            yield from _reads(part, scope)


def _bound(node: Bind, scope: _Scope) -> Iterator[Path]:
    """`cel.bind(gpu, device.attributes["gpu.example.com"], gpu.model == "A10G")` reads one name."""
    path = _path(node.value, scope)
    if path is None or _is_full(path):
        yield from _reads(node.value, scope)
        path = None
    yield from _reads(node.body, {**scope, node.name: path})


def _looped(node: Fold, scope: _Scope) -> Iterator[Path]:
    yield from _reads(node.range, scope)
    inner = {**scope, **dict.fromkeys(node.variables)}
    for part in (node.condition, node.body):
        if part is not None:
            yield from _reads(part, inner)


def _named(node: Node, scope: _Scope) -> Path | None:
    """The one value of the device that the node gives or looks for; None for any other node.

    Beside `domain.name` that is `has(domain.name)`, `domain.?name`, `domain[?"name"]` and
    `"name" in domain`.
    """
    path = _path(node, scope)
    if path is not None:
        return path if _is_full(path) else None
    operand, name = _looked_for(node)
    domain = None if operand is None else _path(operand, scope)
    return (*domain, name) if domain is not None and len(domain) == _DOMAIN else None


def _looked_for(node: Node) -> tuple[Node | None, str]:
    if isinstance(node, Select) and (node.test or node.optional):
        return node.operand, node.field
    if isinstance(node, Call) and node.function in ("_[?_]", "@in"):
        operand, key = node.args if node.function == "_[?_]" else reversed(node.args)
        if isinstance(key, Literal) and isinstance(key.value, str):
            return operand, key.value
    return None, ""


def _is_full(path: Path) -> bool:
    return len(path) == _NAME or (len(path) == 1 and path[0] in _PLAIN)


def _path(node: Node, scope: _Scope) -> Path | None:
    """The way into the device that the node is, also through variables that stand for one."""
    if isinstance(node, Ident) and node.name in scope:
        return scope[node.name]
    if isinstance(node, Ident):
        return device_path(node)
    further = step(node)
    if further is None:
        return None
    path = _path(further[0], scope)
    return None if path is None or _is_full(path) else (*path, further[1])


def _parts(node: Node) -> tuple[Node, ...]:
    if isinstance(node, Call):
        return node.args if node.target is None else (node.target, *node.args)
    if isinstance(node, Select):
        return (node.operand,)
    if isinstance(node, ListNode):
        return node.elements
    if isinstance(node, MapNode):
        return tuple(part for entry in node.entries for part in (entry.key, entry.value))
    if isinstance(node, StructNode):
        return tuple(field.value for field in node.fields)
    return ()
