"""Which calls are macros, and what each becomes.

Source: cel-go's standard macros, its two-variable comprehensions, bindings, optionals and lists
extensions. A call that is no macro by name, style and number of arguments stays a call.
"""

from collections.abc import Callable

from driver.selector.syntax import Bind, Call, Fold, Ident, Node, OptMap, Select

NewId = Callable[[], int]

# The names that cel-go keeps for itself; a variable of a macro may not take them.
_ACCUMULATORS = frozenset({"@result", "__result__"})

# Name -> the numbers of arguments with which a method call is that loop, and how many of the
# first of them are variables.
_LOOPS: dict[str, dict[int, int]] = {
    "all": {2: 1, 3: 2},
    "exists": {2: 1, 3: 2},
    "exists_one": {2: 1, 3: 2},
    "existsOne": {3: 2},
    "map": {2: 1, 3: 1},
    "filter": {2: 1},
    "transformList": {3: 2, 4: 2},
    "transformMap": {3: 2, 4: 2},
    "transformMapEntry": {3: 2, 4: 2},
}
_SORT_INPUT = "@__sortBy_input__"


def expand(call: Call, new_id: NewId) -> Node:
    """The call itself, or the node that a macro stands for. Raises `ValueError` for a misuse."""
    if call.target is None:
        return _has(call) if call.function == "has" and len(call.args) == 1 else call
    variables = _LOOPS.get(call.function, {}).get(len(call.args))
    if variables is not None:
        return _loop(call, call.target, variables)
    other = _OTHERS.get((call.function, len(call.args)))
    return other(call, call.target, new_id) if other else call


def _has(call: Call) -> Node:
    operand = call.args[0]
    if not isinstance(operand, Select) or operand.test:
        raise ValueError("invalid argument to has() macro: expected a field selection")
    return Select(id=call.id, operand=operand.operand, field=operand.field, test=True)


def _loop(call: Call, target: Node, count: int) -> Node:
    names = tuple(_variable(argument) for argument in call.args[:count])
    if len(set(names)) < count:
        raise ValueError(f"{call.function}() needs two different variables, not {names[0]} twice")
    rest = call.args[count:]
    return Fold(
        id=call.id,
        kind="exists_one" if call.function == "existsOne" else call.function,
        range=target,
        variables=names,
        body=rest[-1],
        condition=rest[0] if len(rest) > 1 else None,
    )


def _variable(argument: Node) -> str:
    if not isinstance(argument, Ident) or argument.name.startswith("."):
        raise ValueError("argument must be a simple name")
    if argument.name in _ACCUMULATORS:
        raise ValueError(f"iteration variable overwrites accumulator variable: {argument.name}")
    return argument.name


def _bind(call: Call, target: Node, _: NewId) -> Node:
    if not isinstance(target, Ident) or target.name != "cel":
        return call
    name = _variable(call.args[0])
    return Bind(id=call.id, name=name, value=call.args[1], body=call.args[2])


def _opt_map(call: Call, target: Node, _: NewId) -> Node:
    name = _variable(call.args[0])
    flat = call.function == "optFlatMap"
    return OptMap(id=call.id, target=target, name=name, body=call.args[1], flat=flat)


def _sort_by(call: Call, target: Node, new_id: NewId) -> Node:
    def input_list() -> Node:
        return Ident(new_id(), _SORT_INPUT)

    keys = Fold(
        id=new_id(),
        kind="map",
        range=input_list(),
        variables=(_variable(call.args[0]),),
        body=call.args[1],
    )
    body = Call(new_id(), "@sortByAssociatedKeys", input_list(), (keys,))
    return Bind(id=call.id, name=_SORT_INPUT, value=target, body=body)


_OTHERS: dict[tuple[str, int], Callable[[Call, Node, NewId], Node]] = {
    ("bind", 3): _bind,
    ("optMap", 2): _opt_map,
    ("optFlatMap", 2): _opt_map,
    ("sortBy", 2): _sort_by,
}
