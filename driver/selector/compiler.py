"""How a checked expression becomes a closure: names, fields, literals, bindings.

Calls are compiled in `calls`, loops in `loops`; `closures` brings them together. Every node becomes
one closure over the closures of its parts. With `counting` each charges what it costs; without, the
program must be one whose cost is known to stay below the limit (see `worst`).
"""

from collections.abc import Callable, Mapping
from typing import Any

from driver.selector import access
from driver.selector.checked import Checked
from driver.selector.cost import LIST_CREATE, MAP_CREATE, STRUCT_CREATE
from driver.selector.errors import CelError
from driver.selector.frame import Code, Frame, Run, constant
from driver.selector.paths import Path, device_path, path_run
from driver.selector.syntax import (
    Bind,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    OptMap,
    Select,
    StructNode,
)
from driver.selector.values import ABSENT, Optional, TypeValue, map_key

_UNSET = object()


# How each kind of node is compiled. A node is of the class that its rule is filed under.
Rules = Mapping[type, Callable[["Compiler", Any], Code]]


class _Failed:
    """The error of a bound value, kept so that it is not worked out again."""

    __slots__ = ("error",)

    def __init__(self, error: CelError) -> None:
        self.error = error


class Compiler:
    """One pass over one checked expression."""

    def __init__(self, checked: Checked, rules: "Rules", *, counting: bool) -> None:
        self.checked = checked
        self._rules = rules
        self.counting = counting
        self.variables = 0
        self._scopes: list[dict[str, tuple[int, Run | None]]] = []

    def compile(self, node: Node) -> Code:
        """The node as code."""
        path = self.path(node)
        if path is not None:
            return self.device(path)
        return self._rules[type(node)](self, node)

    def charged(self, run: Run, amount: int) -> Run:
        """The same with a cost added, when costs count."""
        if not self.counting or amount == 0:
            return run

        def charging(frame: Frame) -> object:
            frame.charge(amount)
            return run(frame)

        return charging

    def path(self, node: Node) -> Path | None:
        """The way into the device that this node is, unless a variable hides the device."""
        return device_path(node, hidden=any("device" in scope for scope in self._scopes))

    def device(self, path: Path) -> Code:
        """The code of a way into the device."""
        return Code(self.charged(path_run(path), 1 + len(path)))

    def if_present(self, run: Callable[[Frame], Optional]) -> Code:
        """An optional step into a value, which only costs when there is something."""
        if not self.counting:
            return Code(run)

        def charging(frame: Frame) -> object:
            found = run(frame)
            frame.charge(found.present)
            return found

        return Code(charging)

    # Names and variables

    def declare(self, names: tuple[str, ...], lazy: Run | None = None) -> tuple[int, ...]:
        """Open a scope with these variables and give their slots."""
        slots = tuple(range(self.variables, self.variables + len(names)))
        self.variables += len(names)
        self._scopes.append({name: (slot, lazy) for name, slot in zip(names, slots, strict=True)})
        return slots

    def leave(self) -> None:
        """Close the innermost scope."""
        self._scopes.pop()

    def ident(self, node: Ident) -> Code:
        """A variable, or the name of a type."""
        for scope in reversed(self._scopes):
            if node.name in scope:
                slot, lazy = scope[node.name]
                return Code(self.charged(_variable(slot, lazy), 1))
        return constant(TypeValue(self.checked.types[node.id].name))

    # Fields

    def select(self, node: Select) -> Code:
        """`operand.field`, `operand.?field`, `has(operand.field)`."""
        if node.id in self.checked.types:
            return constant(TypeValue(self.checked.types[node.id].name))
        operand, field = self._operand(node), node.field
        if node.test:
            return Code(lambda frame: access.has(operand(frame), field))
        if node.optional:
            return self.if_present(lambda f: access.optional_select(operand(f), field))
        return Code(self.charged(lambda f: access.select(operand(f), field), 1))

    def _operand(self, node: Select) -> Run:
        """The operand; where it is a part of the device, only the field counts as read."""
        path = self.path(node.operand)
        if path is None or len(path) == len(("attributes", "domain", "name")):
            return self.compile(node.operand).run
        return self.charged(path_run(path), len(path) + (not node.test))

    # Literals

    def literal(self, node: Literal) -> Code:
        """A constant."""
        return constant(node.value)

    def list_literal(self, node: ListNode) -> Code:
        """`[...]`; one of constants is a constant itself."""
        codes = [self.compile(element) for element in node.elements]
        if not node.optional and all(code.constant for code in codes):
            return constant([code.value for code in codes])
        runs = tuple(code.run for code in codes)
        if not node.optional:
            return Code(self.charged(lambda f: [run(f) for run in runs], LIST_CREATE))
        return Code(self.charged(_sparse_list(runs, node.optional), LIST_CREATE))

    def map_literal(self, node: MapNode) -> Code:
        """`{...}`; one of constants is a constant itself."""
        keys = [self.compile(entry.key) for entry in node.entries]
        values = [self.compile(entry.value) for entry in node.entries]
        optional = any(entry.optional for entry in node.entries)
        runs = tuple(
            (key.run, value.run, entry.optional)
            for key, value, entry in zip(keys, values, node.entries, strict=True)
        )
        build = _map_of(runs)
        if not optional and all(code.constant for code in (*keys, *values)):
            try:
                return constant(
                    {map_key(k.value): v.value for k, v in zip(keys, values, strict=True)}
                )
            except CelError:
                return Code(build)
        return Code(self.charged(build, MAP_CREATE))

    def struct(self, node: StructNode) -> Code:
        """A message; the device's type has none that could be made."""

        def run(_: Frame) -> object:
            raise CelError(f"unknown type: {node.name}")

        return Code(self.charged(run, STRUCT_CREATE))

    # Bindings

    def bind(self, node: Bind) -> Code:
        """`cel.bind`: the value is worked out at its first use, once."""
        value = self.compile(node.value).run
        (slot,) = self.declare((node.name,), value)
        body = self.compile(node.body).run
        self.leave()

        def run(frame: Frame) -> object:
            frame.slots[slot] = _UNSET
            return body(frame)

        return Code(run)

    def opt_map(self, node: OptMap) -> Code:
        """`optMap` and `optFlatMap`."""
        target = self.compile(node.target).run
        (slot,) = self.declare((node.name,))
        body = self.compile(node.body).run
        self.leave()
        flat = node.flat

        def run(frame: Frame) -> object:
            before = frame.cost
            found = target(frame)
            if not isinstance(found, Optional):
                raise CelError("no such overload: hasValue")
            if not found.present:
                return ABSENT
            # cel-go works the target out twice: to see whether it is there, and for its value.
            frame.charge(frame.cost - before + 2)
            frame.slots[slot] = found.value
            return body(frame) if flat else Optional(body(frame))

        return Code(run)


def _variable(slot: int, lazy: Run | None) -> Run:
    if lazy is None:
        return lambda frame: frame.slots[slot]

    def run(frame: Frame) -> object:
        value = frame.slots[slot]
        if value is _UNSET:
            try:
                value = frame.slots[slot] = lazy(frame)
            except CelError as error:
                frame.slots[slot] = _Failed(error)
                raise
        elif type(value) is _Failed:
            raise value.error
        return value

    return run


def _sparse_list(runs: tuple[Run, ...], optional: frozenset[int]) -> Run:
    def run(frame: Frame) -> object:
        found: list[object] = []
        for position, element in enumerate(runs):
            value = element(frame)
            if position not in optional:
                found.append(value)
            elif not isinstance(value, Optional):
                raise CelError(f"cannot initialize optional list element from non-optional {value}")
            elif value.present:
                found.append(value.value)
        return found

    return run


def _map_of(runs: tuple[tuple[Run, Run, bool], ...]) -> Run:
    def run(frame: Frame) -> object:
        found: dict[object, object] = {}
        for key, value, optional in runs:
            name, held = map_key(key(frame)), value(frame)
            if not optional:
                found[name] = held
            elif not isinstance(held, Optional):
                raise CelError("cannot initialize optional entry from non-optional value")
            elif held.present:
                found[name] = held.value
        return found

    return run
