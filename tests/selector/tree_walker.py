"""A second, plain evaluation of a checked expression, to hold the compiled one against.

It walks the tree, knows no costs and no short cuts, and shares only the functions' own code.
"""

from collections.abc import Iterator
from typing import Any

from driver.selector import access
from driver.selector.calls import choose
from driver.selector.checked import Checked
from driver.selector.device import SelectorDevice
from driver.selector.equality import equal
from driver.selector.errors import AbortError, CelError
from driver.selector.functions.operators import not_equal
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
)
from driver.selector.values import ABSENT, Optional, TypeValue, key_value, map_key

Scope = dict[str, Any]


class Walker:
    """Evaluates one checked expression on one device."""

    def __init__(self, checked: Checked, device: SelectorDevice) -> None:
        self._checked = checked
        self._device = device

    def value(self, node: Node, scope: Scope) -> Any:
        """The node's value; raises `CelError`."""
        match node:
            case Literal():
                return node.value
            case Ident():
                return self._name(node, scope)
            case Select():
                return self._field(node, scope)
            case Call():
                return self._call(node, scope)
            case ListNode():
                return list(self._elements(node, scope))
            case MapNode():
                return self._map(node, scope)
            case Fold():
                return self._fold(node, scope)
            case Bind():
                # Bound unevaluated: an unused value that fails does not matter.
                return self.value(node.body, {**scope, node.name: (node.value, scope)})
            case OptMap():
                return self._opt_map(node, scope)
            case _:
                raise CelError("unknown type")

    def _name(self, node: Ident, scope: Scope) -> Any:
        if node.name in scope:
            found = scope[node.name]
            return self.value(*found) if isinstance(found, tuple) else found
        if node.id in self._checked.types:
            return TypeValue(self._checked.types[node.id].name)
        return self._device.view

    def _field(self, node: Select, scope: Scope) -> Any:
        if node.id in self._checked.types:
            return TypeValue(self._checked.types[node.id].name)
        operand = self.value(node.operand, scope)
        if node.test:
            return access.has(operand, node.field)
        reach = access.optional_select if node.optional else access.select
        return reach(operand, node.field)

    def _elements(self, node: ListNode, scope: Scope) -> Iterator[Any]:
        for position, element in enumerate(node.elements):
            found = self.value(element, scope)
            if position not in node.optional:
                yield found
            elif found.present:
                yield found.value

    def _map(self, node: MapNode, scope: Scope) -> Any:
        found = {}
        for entry in node.entries:
            key, held = map_key(self.value(entry.key, scope)), self.value(entry.value, scope)
            if not entry.optional:
                found[key] = held
            elif held.present:
                found[key] = held.value
        return found

    def _call(self, node: Call, scope: Scope) -> Any:
        match node.function:
            case "_&&_" | "_||_":
                return self._logical(node, scope)
            case "_?_:_":
                condition = self.value(node.args[0], scope)
                if condition not in (True, False) or not isinstance(condition, bool):
                    raise CelError("no such overload")
                return self.value(node.args[1 if condition else 2], scope)
            case "@in":
                return self._in(node, scope)
            case "or" | "orValue":
                return self._optional_or(node, scope)
        args = self._args(node, scope)
        match node.function:
            case "_[_]":
                return access.index(*args)
            case "_[?_]":
                return access.optional_index(*args)
            case "_==_":
                return equal(*args)
            case "_!=_":
                return not_equal(*args)
        return choose(self._checked.overloads[node.id], tuple(args)).run(*args)

    def _args(self, node: Call, scope: Scope) -> list[Any]:
        method = node.target is not None and node.id not in self._checked.functions
        nodes = (node.target, *node.args) if method else node.args
        return [self.value(argument, scope) for argument in nodes if argument is not None]

    def _logical(self, node: Call, scope: Scope) -> bool:
        decisive = node.function == "_||_"
        failure: CelError | None = None
        for argument in node.args:
            try:
                found = self.value(argument, scope)
            except CelError as error:
                failure = failure or error
                continue
            if found is decisive:
                return bool(decisive)
            if not isinstance(found, bool):
                failure = failure or CelError("no such overload")
        if failure:
            raise failure
        return not decisive

    def _in(self, node: Call, scope: Scope) -> bool:
        members = node.args[1]
        constant = isinstance(members, ListNode) and all(
            isinstance(element, Literal) and element.value is not None
            for element in members.elements
        )
        if isinstance(members, ListNode) and not members.elements:
            return False
        value, container = self._args(node, scope)
        if constant and getattr(value, "unhashable", False):
            raise AbortError("hash of unhashable type")
        return access.contains(container, value)

    def _optional_or(self, node: Call, scope: Scope) -> Any:
        found = self.value(node.target, scope) if node.target else None
        if not isinstance(found, Optional):
            return found
        if not found.present:
            return self.value(node.args[0], scope)
        return found.value if node.function == "orValue" else found

    def _opt_map(self, node: OptMap, scope: Scope) -> Any:
        found = self.value(node.target, scope)
        if not isinstance(found, Optional):
            raise CelError("no such overload")
        if not found.present:
            return ABSENT
        body = self.value(node.body, {**scope, node.name: found.value})
        return body if node.flat else Optional(body)

    def _turns(self, node: Fold, scope: Scope) -> Iterator[Scope]:
        ranged = self.value(node.range, scope)
        if not isinstance(ranged, (list, dict)):
            raise CelError("no such overload")
        pairs = enumerate(ranged) if isinstance(ranged, list) else ranged.items()
        for key, item in pairs:
            pair = (key_value(key), item)
            single = pair[1:] if isinstance(ranged, list) else pair[:1]
            turn = pair if len(node.variables) > 1 else single
            yield {**scope, **dict(zip(node.variables, turn, strict=True))}

    def _fold(self, node: Fold, scope: Scope) -> Any:
        if node.kind in ("all", "exists"):
            return self._decided(node, scope)
        kept = []
        test = node.body if node.kind in ("exists_one", "filter") else node.condition
        for turn in self._turns(node, scope):
            found = True if test is None else self.value(test, turn)
            if not isinstance(found, bool):
                raise CelError("no such overload")
            if found:
                first = turn[node.variables[0]]
                kept.append((first, None if test is node.body else self.value(node.body, turn)))
        return _collected(node.kind, kept)

    def _decided(self, node: Fold, scope: Scope) -> bool:
        decisive = node.kind == "exists"
        failure: CelError | None = None
        for turn in self._turns(node, scope):
            try:
                found = self.value(node.body, turn)
            except CelError as error:
                failure = failure or error
                continue
            if found is decisive:
                return bool(decisive)
            if not isinstance(found, bool):
                failure = failure or CelError("no such overload")
        if failure:
            raise failure
        return not decisive


def _collected(kind: str, kept: list[tuple[Any, Any]]) -> Any:
    match kind:
        case "exists_one":
            return len(kept) == 1
        case "filter":
            return [first for first, _ in kept]
        case "map" | "transformList":
            return [body for _, body in kept]
        case "transformMap":
            return {map_key(first): body for first, body in kept}
    found: dict[Any, Any] = {}
    for _, entries in kept:
        if not isinstance(entries, dict) or found.keys() & entries.keys():
            raise CelError("insert failed")
        found |= entries
    return found
