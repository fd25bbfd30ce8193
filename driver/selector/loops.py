"""How the macros that walk over lists and maps are compiled.

The costs are those of the generic comprehension that cel-go expands a macro into: the loop's
condition, its step and its result, each with the reads of the hidden accumulator.
"""

from collections.abc import Callable, Iterator

from driver.selector.compiler import Compiler
from driver.selector.errors import CelError, no_such_overload
from driver.selector.frame import Code, Frame, Run
from driver.selector.syntax import Fold
from driver.selector.values import key_value, map_key

# Puts the next element into the variables and gives the frame's turn to the body.
Steps = Callable[[Frame], Iterator[None]]

# What one turn costs beside the body, and what the result costs.
_ALL_TURN, _EXISTS_TURN, _COUNT_TURN = 3, 4, 2
_APPEND, _INSERT, _MERGE = 12, 3, 2
_COUNT_RESULT = 2


def compile_fold(compiler: Compiler, node: Fold) -> Code:
    """The code of a loop."""
    ranged = compiler.compile(node.range).run
    slots = compiler.declare(node.variables)
    condition = None if node.condition is None else compiler.compile(node.condition).run
    body = compiler.compile(node.body).run
    compiler.leave()
    steps = _steps(ranged, slots)
    if node.kind in ("all", "exists"):
        return Code(_deciding(steps, body, decisive=node.kind == "exists"))
    if node.kind == "exists_one":
        return Code(_counting(steps, body))
    if node.kind == "filter":
        return Code(_listing(steps, body, lambda frame: frame.slots[slots[0]]))
    if node.kind in ("map", "transformList"):
        return Code(_listing(steps, condition, body))
    if node.kind == "transformMap":
        return Code(_mapping(steps, condition, body, slots[0]))
    return Code(_merging(steps, condition, body))


def _steps(ranged: Run, slots: tuple[int, ...]) -> Steps:
    return _one(ranged, slots[0]) if len(slots) == 1 else _two(ranged, *slots)


def _one(ranged: Run, slot: int) -> Steps:
    """One variable: a list's elements, a map's keys."""

    def steps(frame: Frame) -> Iterator[None]:
        found = ranged(frame)
        slots = frame.slots
        if isinstance(found, list):
            for element in found:
                slots[slot] = element
                yield
        elif isinstance(found, dict):
            for key in found:
                slots[slot] = key_value(key)
                yield
        else:
            raise no_such_overload("comprehension range")

    return steps


def _two(ranged: Run, first: int, second: int) -> Steps:
    """Two variables: a list's positions and elements, a map's keys and values."""

    def steps(frame: Frame) -> Iterator[None]:
        found = ranged(frame)
        slots = frame.slots
        if isinstance(found, list):
            for slots[first], slots[second] in enumerate(found):
                yield
        elif isinstance(found, dict):
            for key, value in found.items():
                slots[first], slots[second] = key_value(key), value
                yield
        else:
            raise no_such_overload("comprehension range")

    return steps


def _deciding(steps: Steps, body: Run, *, decisive: bool) -> Run:
    """`all` is decided by one false, `exists` by one true, whatever fails beside it."""
    turn = _EXISTS_TURN if decisive else _ALL_TURN

    def run(frame: Frame) -> object:
        failure: CelError | None = None
        frame.charge(1)
        for _ in steps(frame):
            frame.charge(turn)
            try:
                value = body(frame)
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

    return run


def _true(value: object) -> bool:
    if value is True or value is False:
        return value is True
    raise no_such_overload("_?_:_")


def _counting(steps: Steps, body: Run) -> Run:
    def run(frame: Frame) -> object:
        count = 0
        frame.charge(_COUNT_RESULT)
        for _ in steps(frame):
            if _true(body(frame)):
                count += 1
                frame.charge(_COUNT_TURN)
        return count == 1

    return run


def _listing(steps: Steps, condition: Run | None, body: Run) -> Run:
    def run(frame: Frame) -> object:
        found: list[object] = []
        frame.charge(1)
        for _ in steps(frame):
            if condition is None or _true(condition(frame)):
                frame.charge(_APPEND)
                found.append(body(frame))
        return found

    return run


def _mapping(steps: Steps, condition: Run | None, body: Run, key: int) -> Run:
    def run(frame: Frame) -> object:
        found: dict[object, object] = {}
        frame.charge(1)
        for _ in steps(frame):
            if condition is None or _true(condition(frame)):
                frame.charge(_INSERT)
                found[map_key(frame.slots[key])] = body(frame)
        return found

    return run


def _merging(steps: Steps, condition: Run | None, body: Run) -> Run:
    def run(frame: Frame) -> object:
        found: dict[object, object] = {}
        frame.charge(1)
        for _ in steps(frame):
            if condition is not None and not _true(condition(frame)):
                continue
            frame.charge(_MERGE)
            entries = body(frame)
            if not isinstance(entries, dict):
                raise no_such_overload("cel.@mapInsert")
            for name, value in entries.items():
                if name in found:
                    raise CelError(f"insert failed: key {key_value(name)} already exists")
                found[name] = value
        return found

    return run
