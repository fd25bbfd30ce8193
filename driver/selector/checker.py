"""Which types an expression has, and which overloads each of its calls may reach.

Source of the rules: cel-go's type checker with Kubernetes' options: optional types, elements of
list and map literals of one type, `dyn` for what an attribute holds. It finds no values; what a
constant expression gives is the compiler's business.
"""

from collections.abc import Callable
from typing import Any

from driver.selector.checked import Checked
from driver.selector.declarations import FUNCTIONS
from driver.selector.errors import CompileError
from driver.selector.functions.library import Overload
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
from driver.selector.types import (
    BOOL,
    BYTES,
    DEVICE,
    DOUBLE,
    DYN,
    FIELDS,
    INT,
    NULL,
    STRING,
    TYPE_NAMES,
    UINT,
    Type,
    is_optional,
    list_of,
    map_of,
    optional_of,
    type_of,
)
from driver.selector.unify import Bindings, most_general
from driver.selector.validation import Validation
from driver.selector.values import Uint

_LITERALS: dict[type, Type] = {
    type(None): NULL,
    bool: BOOL,
    int: INT,
    Uint: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
}
_LOGICAL = frozenset({"_&&_", "_||_"})
# Inside a call of these, a list literal may mix types.
_MIXING = frozenset({"format"})


def check(node: Node) -> Checked:
    """Type the whole expression. Raises `CompileError`."""
    checker = _Checker()
    result = checker.type_of(node)
    checker.validation.check(checker.bindings)
    return Checked(
        checker.bindings.substitute(result, to_dyn=True),
        checker.overloads,
        checker.functions,
        checker.types,
    )


def qualified_name(node: Node) -> str | None:
    """`a.b.c` as one name, or None for anything else."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not (node.test or node.optional):
        prefix = qualified_name(node.operand)
        return None if prefix is None else f"{prefix}.{node.field}"
    return None


class _Checker:
    """One pass over one expression."""

    def __init__(self) -> None:
        self.bindings = Bindings()
        self.overloads: dict[int, tuple[Overload, ...]] = {}
        self.functions: dict[int, str] = {}
        self.types: dict[int, Type] = {}
        self._scopes: list[dict[str, Type]] = [{"device": DEVICE}]
        self._mixing = 0
        self.validation = Validation()

    def type_of(self, node: Node) -> Type:
        """The node's type; parameters in it may still be bound later."""
        return _RULES[type(node)](self, node)

    # Names

    def literal(self, node: Literal) -> Type:
        return _LITERALS[type(node.value)]

    def ident(self, node: Ident) -> Type:
        name = node.name.removeprefix(".")
        scopes = self._scopes[:1] if name != node.name else self._scopes[::-1]
        for scope in scopes:
            if name in scope:
                return scope[name]
        if name in TYPE_NAMES:
            self.types[node.id] = TYPE_NAMES[name]
            return type_of(TYPE_NAMES[name])
        raise _undeclared(name)

    def select(self, node: Select) -> Type:
        name = None if node.test else qualified_name(node)
        if name is not None and name.removeprefix(".") in TYPE_NAMES:
            self.types[node.id] = TYPE_NAMES[name.removeprefix(".")]
            return type_of(self.types[node.id])
        operand = self.bindings.substitute(self.type_of(node.operand))
        inner = operand.params[0] if is_optional(operand) else operand
        field = self._field(self.bindings.substitute(inner), node.field)
        if node.test:
            return BOOL
        if not (node.optional or is_optional(operand)):
            return field
        return field if is_optional(field) else optional_of(field)

    def _field(self, operand: Type, field: str) -> Type:
        if operand.kind == "map":
            return operand.params[1]
        if operand.kind == "struct":
            fields = FIELDS.get(operand.name, {})
            if field not in fields:
                raise CompileError(f"compilation failed: undefined field '{field}'")
            return fields[field]
        if operand.kind == "param":
            self.bindings.assignable((DYN,), (operand,))
        elif operand.kind != "dyn":
            raise CompileError(
                f"compilation failed: type '{operand}' does not support field selection"
            )
        return DYN

    # Calls

    def call(self, node: Call) -> Type:
        name, target = node.function.removeprefix("."), node.target
        prefix = None if target is None else qualified_name(target)
        if prefix is not None and f"{prefix}.{name}".removeprefix(".") in FUNCTIONS:
            name, target = f"{prefix}.{name}".removeprefix("."), None
            self.functions[node.id] = name
        self._mixing += name in _MIXING
        parts = node.args if target is None else (target, *node.args)
        args = tuple(self.type_of(part) for part in parts)
        self._mixing -= name in _MIXING
        if name in _LOGICAL:
            return self._logical(name, args)
        if name not in FUNCTIONS:
            raise _undeclared(name)
        if name == "format" and target is not None:
            self.validation.note_format(target, node.args)
        return self._resolve(node.id, name, args, method=target is not None)

    def _logical(self, name: str, args: tuple[Type, ...]) -> Type:
        for argument in args:
            self._expect_bool(argument, name)
        return BOOL

    def _expect_bool(self, found: Type, name: str) -> None:
        if not self.bindings.assignable((found,), (BOOL,)):
            raise self._no_overload(name, (found,))

    def _resolve(self, node: int, name: str, args: tuple[Type, ...], *, method: bool) -> Type:
        reached: list[Overload] = []
        result: Type | None = None
        for overload in FUNCTIONS[name]:
            if overload.method != method:
                continue
            params, given = self._instance(overload)
            if not self.bindings.assignable(args, params):
                continue
            reached.append(overload)
            found = self.bindings.substitute(given)
            if result is None:
                result = found
            elif result not in (DYN, found):
                result = DYN
        if result is None:
            raise self._no_overload(name, args)
        self.overloads[node] = tuple(reached)
        return result

    def _instance(self, overload: Overload) -> tuple[tuple[Type, ...], Type]:
        """The overload's types with parameters of this call's own."""
        fresh: dict[str, Type] = {}

        def renew(found: Type) -> Type:
            if found.kind == "param":
                return fresh.setdefault(found.name, self.bindings.fresh())
            if not found.params:
                return found
            return Type(found.kind, found.name, tuple(renew(param) for param in found.params))

        return tuple(renew(param) for param in overload.params), renew(overload.result)

    def _no_overload(self, name: str, args: tuple[Type, ...]) -> CompileError:
        given = ", ".join(str(self.bindings.substitute(one, to_dyn=True)) for one in args)
        return CompileError(
            f"compilation failed: found no matching overload for '{name}' applied to '({given})'"
        )

    # Literals of lists, maps and messages

    def list_literal(self, node: ListNode) -> Type:
        found = [
            self._element(element, optional=position in node.optional)
            for position, element in enumerate(node.elements)
        ]
        self.validation.note_elements(node, found)
        return list_of(self._joined("elements", found))

    def map_literal(self, node: MapNode) -> Type:
        keys, values = [], []
        for entry in node.entries:
            keys.append(self.type_of(entry.key))
            values.append(self._element(entry.value, optional=entry.optional))
        return map_of(self._joined("keys", keys), self._joined("values", values))

    def _element(self, node: Node, *, optional: bool) -> Type:
        found = self.type_of(node)
        if not optional:
            return found
        inner = self.bindings.fresh()
        if not self.bindings.assignable((found,), (optional_of(inner),)):
            raise CompileError(f"compilation failed: expected an optional, found '{found}'")
        return self.bindings.substitute(inner)

    def _joined(self, what: str, found: list[Type]) -> Type:
        if not found:
            return self.bindings.fresh()
        if not self._mixing:
            self.validation.note_literal(what, found)
        joined = found[0]
        for other in found[1:]:
            matches = self.bindings.assignable((joined,), (other,))
            joined = most_general(joined, other) if matches else DYN
        return joined

    def struct(self, node: StructNode) -> Type:
        name = node.name.removeprefix(".")
        if name not in FIELDS:
            raise _undeclared(name)
        for field in node.fields:
            wanted = FIELDS[name].get(field.name)
            if wanted is None:
                raise CompileError(f"compilation failed: undefined field '{field.name}'")
            if not self.bindings.assignable((self.type_of(field.value),), (wanted,)):
                raise CompileError(f"compilation failed: field '{field.name}' must be '{wanted}'")
        return DEVICE

    # Macros

    def fold(self, node: Fold) -> Type:
        types = self._ranged(self.type_of(node.range), len(node.variables))
        self._scopes.append(dict(zip(node.variables, types, strict=True)))
        if node.condition is not None:
            self._expect_bool(self.type_of(node.condition), "_?_:_")
        body = self.type_of(node.body)
        self._scopes.pop()
        return self._folded(node.kind, types, body)

    def _ranged(self, found: Type, count: int) -> tuple[Type, ...]:
        ranged = self.bindings.substitute(found)
        if ranged.kind == "list":
            element = ranged.params[0]
            return (element,) if count == 1 else (INT, element)
        if ranged.kind == "map":
            return ranged.params[:count]
        if ranged.kind == "param":
            self.bindings.assignable((DYN,), (ranged,))
        elif ranged.kind != "dyn":
            raise CompileError(
                f"compilation failed: expression of type '{ranged}' cannot be range of a "
                "comprehension (must be list, map, or dynamic)"
            )
        return (DYN,) * count

    def _folded(self, kind: str, types: tuple[Type, ...], body: Type) -> Type:
        if kind in ("all", "exists", "exists_one"):
            self._expect_bool(body, kind)
            return BOOL
        if kind == "filter":
            self._expect_bool(body, kind)
            return list_of(types[0])
        if kind in ("map", "transformList"):
            return list_of(body)
        if kind == "transformMap":
            return map_of(types[0], body)
        entry = map_of(self.bindings.fresh(), self.bindings.fresh())
        if not self.bindings.assignable((body,), (entry,)):
            raise self._no_overload("cel.@mapInsert", (entry, body))
        return self.bindings.substitute(entry)

    def bind(self, node: Bind) -> Type:
        value = self.type_of(node.value)
        return self._with(node.name, value, node.body)

    def opt_map(self, node: OptMap) -> Type:
        inner = self.bindings.fresh()
        target = self.type_of(node.target)
        if not self.bindings.assignable((target,), (optional_of(inner),)):
            raise self._no_overload("hasValue", (target,))
        body = self._with(node.name, self.bindings.substitute(inner), node.body)
        if not node.flat:
            return optional_of(body)
        if not self.bindings.assignable((body,), (optional_of(self.bindings.fresh()),)):
            raise self._no_overload("_?_:_", (BOOL, body, optional_of(DYN)))
        return body

    def _with(self, name: str, value: Type, body: Node) -> Type:
        self._scopes.append({name: value})
        found = self.type_of(body)
        self._scopes.pop()
        return found


def _undeclared(name: str) -> CompileError:
    return CompileError(f"compilation failed: undeclared reference to '{name}' (in container '')")


# The node is of the class that it is filed under.
_RULES: dict[type, Callable[[_Checker, Any], Type]] = {
    Literal: _Checker.literal,
    Ident: _Checker.ident,
    Select: _Checker.select,
    Call: _Checker.call,
    ListNode: _Checker.list_literal,
    MapNode: _Checker.map_literal,
    StructNode: _Checker.struct,
    Fold: _Checker.fold,
    Bind: _Checker.bind,
    OptMap: _Checker.opt_map,
}
