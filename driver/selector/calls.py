"""How calls are compiled: operators that decide what is evaluated, and functions by overload."""

from collections.abc import Callable

from driver.selector import access
from driver.selector.compiler import Compiler
from driver.selector.cost import Cost, compared, inside, shorter
from driver.selector.declarations import CONVERSIONS, Test, argument_tests, plain_class
from driver.selector.equality import equal
from driver.selector.errors import CelError, CompileError, no_such_overload
from driver.selector.frame import Code, Frame, Run, constant
from driver.selector.functions import operators, regex
from driver.selector.functions.library import Overload
from driver.selector.membership import compile_in
from driver.selector.syntax import Call, Node
from driver.selector.values import Optional

Comparison = Callable[[object, object], bool]
# An overload with the test of each of its arguments.
_Candidate = tuple[Overload, tuple[Test | None, ...]]

_ORDER: dict[str, Comparison] = {
    "_<_": operators.less,
    "_<=_": operators.less_or_equal,
    "_>_": operators.greater,
    "_>=_": operators.greater_or_equal,
}
_EQUALITY: dict[str, Comparison] = {"_==_": equal, "_!=_": operators.not_equal}


def compile_call(compiler: Compiler, node: Call) -> Code:
    """The code of a call."""
    special = _SPECIAL.get(node.function)
    if special is not None and node.target is None:
        return special(compiler, node)
    if node.function in ("or", "orValue") and node.target is not None:
        return _optional_or(compiler, node, node.target)
    args: tuple[Node, ...] = node.args
    if node.target is not None and node.id not in compiler.checked.functions:
        args = (node.target, *args)
    codes = tuple(compiler.compile(argument) for argument in args)
    return _function(compiler, node, codes)


def _function(compiler: Compiler, node: Call, codes: tuple[Code, ...]) -> Code:
    overloads = compiler.checked.overloads[node.id]
    name = overloads[0].function
    run = dispatch(overloads, tuple(code.run for code in codes), counting=compiler.counting)
    constants = all(code.constant for code in codes)
    if name in CONVERSIONS and constants and len(codes) == 1:
        return _folded(overloads, codes[0].value)
    if name in regex.PATTERN_FUNCTIONS and codes[1].constant:
        _check_pattern(codes[1].value)
    if constants and not compiler.counting and overloads[0].result.kind == "struct":
        return Code(_worked_out(overloads, tuple(code.value for code in codes)))
    return Code(run)


def _folded(overloads: tuple[Overload, ...], value: object) -> Code:
    """A conversion of a constant happens at compile time, and so does its error."""
    try:
        return constant(choose(overloads, (value,)).run(value))
    except CelError as error:
        raise CompileError(f"program instantiation failed: {error}") from error


def _check_pattern(value: object) -> None:
    try:
        if isinstance(value, str):
            regex.pattern(value)
    except CelError as error:
        raise CompileError(f"program instantiation failed: {error}") from error


def _worked_out(overloads: tuple[Overload, ...], args: tuple[object, ...]) -> Run:
    """A constructor called with constants gives the same every time."""
    try:
        value = choose(overloads, args).run(*args)
    except CelError as error:
        text = str(error)

        def fail(_: Frame) -> object:
            raise CelError(text)

        return fail
    return lambda _: value


def choose(overloads: tuple[Overload, ...], args: tuple[object, ...]) -> Overload:
    """The overload that takes these values; raises `CelError` when none does."""
    return _chosen(tuple((overload, argument_tests(overload)) for overload in overloads), args)


def _chosen(candidates: tuple[_Candidate, ...], args: tuple[object, ...]) -> Overload:
    for overload, tests in candidates:
        for test, value in zip(tests, args, strict=True):
            if test is not None and not test(value):
                break
        else:
            return overload
    raise no_such_overload(candidates[0][0].function)


def dispatch(overloads: tuple[Overload, ...], runs: tuple[Run, ...], *, counting: bool) -> Run:
    """Evaluate the arguments, and run the overload that takes them."""
    if len(overloads) == 1:
        quick = None if counting else _quick(overloads[0], runs)
        return quick or _single(overloads[0], runs, counting=counting)
    candidates = tuple((overload, argument_tests(overload)) for overload in overloads)

    def several(frame: Frame) -> object:
        args = tuple([run(frame) for run in runs])
        overload = _chosen(candidates, args)
        if counting:
            charge(frame, overload.cost, args)
        return overload.run(*args)

    return several


def _single(overload: Overload, runs: tuple[Run, ...], *, counting: bool) -> Run:
    tests = argument_tests(overload)

    def single(frame: Frame) -> object:
        args = tuple([run(frame) for run in runs])
        for test, value in zip(tests, args, strict=True):
            if test is not None and not test(value):
                raise no_such_overload(overload.function)
        if counting:
            charge(frame, overload.cost, args)
        return overload.run(*args)

    return single


def charge(frame: Frame, cost: Cost, args: tuple[object, ...]) -> None:
    """Charge a call with these arguments."""
    frame.charge(cost if isinstance(cost, int) else cost(args))


def _quick(overload: Overload, runs: tuple[Run, ...]) -> Run | None:
    """The usual case made quick: one overload of one or two parameters of plain types."""
    classes = tuple(map(plain_class, overload.params))
    if None in classes or len(runs) not in (1, 2):
        return None
    call, name = overload.run, overload.function
    first, first_class = runs[0], classes[0]
    if len(runs) == 1:

        def unary(frame: Frame) -> object:
            value = first(frame)
            if type(value) is first_class:
                return call(value)
            raise no_such_overload(name)

        return unary
    second, second_class = runs[1], classes[1]

    def binary(frame: Frame) -> object:
        left, right = first(frame), second(frame)
        if type(left) is first_class and type(right) is second_class:
            return call(left, right)
        raise no_such_overload(name)

    return binary


# Operators


def _runs(compiler: Compiler, node: Call) -> tuple[Run, ...]:
    return tuple(compiler.compile(argument).run for argument in node.args)


def _logical(decisive: bool) -> Callable[[Compiler, Call], Code]:  # noqa: FBT001
    """`&&` is decided by one false, `||` by one true, whatever fails beside it."""

    def compile_logical(compiler: Compiler, node: Call) -> Code:
        runs = _runs(compiler, node)

        def run(frame: Frame) -> object:
            failure: CelError | None = None
            for operand in runs:
                try:
                    value = operand(frame)
                except CelError as error:
                    failure = failure or error
                    continue
                if value is decisive:
                    return decisive
                if value is not True and value is not False:
                    failure = failure or no_such_overload()
            if failure is not None:
                raise failure
            return not decisive

        return Code(run)

    return compile_logical


def _conditional(compiler: Compiler, node: Call) -> Code:
    condition, chosen, other = _runs(compiler, node)

    def run(frame: Frame) -> object:
        value = condition(frame)
        if value is True:
            return chosen(frame)
        if value is False:
            return other(frame)
        raise no_such_overload("_?_:_")

    return Code(run)


def _equality(compiler: Compiler, node: Call) -> Code:
    left, right = (compiler.compile(argument) for argument in node.args)
    equality = _EQUALITY[node.function]
    if compiler.counting:
        return Code(_comparing(equality, left.run, right.run, compared))
    if isinstance(right.value, str):
        return Code(_equal_text(left.run, right.value, wanted=node.function == "_==_"))
    one, other = left.run, right.run
    return Code(lambda frame: equality(one(frame), other(frame)))


def _comparing(comparison: Comparison, left: Run, right: Run, cost: Cost) -> Run:
    def run(frame: Frame) -> object:
        args = left(frame), right(frame)
        charge(frame, cost, args)
        return comparison(*args)

    return run


def _equal_text(left: Run, text: str, *, wanted: bool) -> Run:
    def run(frame: Frame) -> object:
        value = left(frame)
        if type(value) is str:
            return (value == text) is wanted
        return equal(value, text) if wanted else operators.not_equal(value, text)

    return run


def _ordered(compiler: Compiler, node: Call) -> Code:
    left, right = _runs(compiler, node)
    order = _ORDER[node.function]
    if compiler.counting:
        texts = any(callable(one.cost) for one in compiler.checked.overloads[node.id])
        if texts:
            return Code(_comparing(order, left, right, shorter))
    run: Run = lambda frame: order(left(frame), right(frame))  # noqa: E731
    return Code(compiler.charged(run, 1))


def _index(compiler: Compiler, node: Call) -> Code:
    operand, key = _runs(compiler, node)
    return Code(compiler.charged(lambda frame: access.index(operand(frame), key(frame)), 1))


def _optional_index(compiler: Compiler, node: Call) -> Code:
    operand, key = _runs(compiler, node)
    return compiler.if_present(lambda frame: access.optional_index(operand(frame), key(frame)))


def _optional_or(compiler: Compiler, node: Call, target: Node) -> Code:
    """`a.or(b)` and `a.orValue(b)`: the other is evaluated only when needed.

    What only turns out at run time to be no optional stands for itself, as in cel-go.
    """
    first = compiler.compile(target).run
    other = compiler.compile(node.args[0]).run
    unwrap = node.function == "orValue"

    def run(frame: Frame) -> object:
        found = first(frame)
        if not isinstance(found, Optional):
            return found
        if not found.present:
            return other(frame)
        return found.value if unwrap else found

    return Code(run)


def _in(compiler: Compiler, node: Call) -> Code:
    code = compile_in(compiler, node)
    if code is not None:
        return code
    value, container = _runs(compiler, node)

    def run(frame: Frame) -> object:
        args = value(frame), container(frame)
        if compiler.counting:
            charge(frame, _membership, args)
        return access.contains(args[1], args[0])

    return Code(run)


def _membership(args: tuple[object, ...]) -> int:
    return inside(args) if isinstance(args[1], list) else 1


_SPECIAL: dict[str, Callable[[Compiler, Call], Code]] = {
    "_&&_": _logical(decisive=False),
    "_||_": _logical(decisive=True),
    "_?_:_": _conditional,
    "_[_]": _index,
    "_[?_]": _optional_index,
    "@in": _in,
    **dict.fromkeys(_EQUALITY, _equality),
    **dict.fromkeys(_ORDER, _ordered),
}
