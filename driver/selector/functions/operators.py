"""Arithmetic, order, equality and size: what the symbols of the language do."""

import math
from collections.abc import Callable

from driver.selector import cost
from driver.selector.cost import MAX_ELEMENTS, limit_exceeded
from driver.selector.equality import compare, equal
from driver.selector.errors import CelError, no_such_overload
from driver.selector.functions.library import Overload, function, method
from driver.selector.functions.times import shifted, span
from driver.selector.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    A,
    B,
    Type,
    list_of,
    map_of,
)
from driver.selector.values import Uint, int64, uint64


def _divide(left: int, right: int) -> int:
    if right == 0:
        raise CelError("division by zero")
    quotient = abs(left) // abs(right)
    return int64(quotient if (left < 0) == (right < 0) else -quotient)


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise CelError("modulus by zero")
    _divide(left, right)  # the quotient, too, must be an int64
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def _divide_unsigned(left: int, right: int) -> Uint:
    if right == 0:
        raise CelError("division by zero")
    return Uint(left // right)


def _remainder_unsigned(left: int, right: int) -> Uint:
    if right == 0:
        raise CelError("modulus by zero")
    return Uint(left % right)


def _divide_doubles(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left) or math.isnan(right):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _concatenated(left: list[object], right: list[object]) -> list[object]:
    """`list + list`, up to a length that nothing sensible needs."""
    if len(left) + len(right) > MAX_ELEMENTS:
        raise limit_exceeded()
    return left + right


def _size(value: str | bytes | list[object] | dict[object, object]) -> int:
    return len(value)


def not_equal(left: object, right: object) -> bool:
    """`left != right`: what cannot be compared is different."""
    try:
        return not equal(left, right)
    except CelError:
        return True


def negated(value: bool) -> bool:  # noqa: FBT001 - the operand of an operator
    """`!value`."""
    return not value


def less(left: object, right: object) -> bool:
    """`left < right`."""
    return compare(left, right) < 0


def less_or_equal(left: object, right: object) -> bool:
    """`left <= right`."""
    return compare(left, right) <= 0


def greater(left: object, right: object) -> bool:
    """`left > right`."""
    return compare(left, right) > 0


def greater_or_equal(left: object, right: object) -> bool:
    """`left >= right`."""
    return compare(left, right) >= 0


def _arithmetic(name: str, kind: Type, run: Callable[..., object]) -> Overload:
    return function(name, (kind, kind), kind, run)


def _order(name: str, run: Callable[[object, object], bool]) -> list[Overload]:
    numbers = [
        (left, right)
        for left, others in ((INT, (DOUBLE, UINT)), (UINT, (DOUBLE, INT)), (DOUBLE, (INT, UINT)))
        for right in (left, *others)
    ]
    texts = [(STRING, STRING), (BYTES, BYTES)]
    return [
        function(name, pair, BOOL, run, cost=cost.shorter if pair in texts else 1)
        for pair in [
            (BOOL, BOOL),
            *numbers,
            *texts,
            (TIMESTAMP, TIMESTAMP),
            (DURATION, DURATION),
        ]
    ]


def _sizes() -> list[Overload]:
    found: list[Overload] = []
    for kind in (BYTES, list_of(A), map_of(A, B), STRING):
        found += [function("size", (kind,), INT, _size), method("size", (kind,), INT, _size)]
    return found


def _decided_elsewhere(*_: object) -> object:
    raise no_such_overload()


# Where the type of an operand is still open, the first overload that fits binds it: the order is
# cel-go's.
OVERLOADS: tuple[Overload, ...] = (
    function("_+_", (BYTES, BYTES), BYTES, lambda a, b: a + b, cost=cost.concatenate),
    _arithmetic("_+_", DOUBLE, lambda left, right: left + right),
    function("_+_", (DURATION, DURATION), DURATION, lambda a, b: span(a.nanos + b.nanos)),
    function("_+_", (DURATION, TIMESTAMP), TIMESTAMP, lambda a, b: shifted(b, a.nanos)),
    function("_+_", (TIMESTAMP, DURATION), TIMESTAMP, lambda a, b: shifted(a, b.nanos)),
    _arithmetic("_+_", INT, lambda left, right: int64(left + right)),
    function("_+_", (list_of(A), list_of(A)), list_of(A), _concatenated, cost=cost.joined_lists),
    function("_+_", (STRING, STRING), STRING, lambda a, b: a + b, cost=cost.concatenate),
    _arithmetic("_+_", UINT, lambda left, right: uint64(left + right)),
    _arithmetic("_-_", DOUBLE, lambda left, right: left - right),
    function("_-_", (DURATION, DURATION), DURATION, lambda a, b: span(a.nanos - b.nanos)),
    _arithmetic("_-_", INT, lambda left, right: int64(left - right)),
    function("_-_", (TIMESTAMP, DURATION), TIMESTAMP, lambda a, b: shifted(a, -b.nanos)),
    function("_-_", (TIMESTAMP, TIMESTAMP), DURATION, lambda a, b: span(a.nanos - b.nanos)),
    _arithmetic("_-_", UINT, lambda left, right: uint64(left - right)),
    _arithmetic("_*_", DOUBLE, lambda left, right: left * right),
    _arithmetic("_*_", INT, lambda left, right: int64(left * right)),
    _arithmetic("_*_", UINT, lambda left, right: uint64(left * right)),
    _arithmetic("_/_", DOUBLE, _divide_doubles),
    _arithmetic("_/_", INT, _divide),
    _arithmetic("_/_", UINT, _divide_unsigned),
    _arithmetic("_%_", INT, _remainder),
    _arithmetic("_%_", UINT, _remainder_unsigned),
    function("-_", (DOUBLE,), DOUBLE, lambda value: -value),
    function("-_", (INT,), INT, lambda value: int64(-value)),
    function("!_", (BOOL,), BOOL, negated),
    function("_==_", (A, A), BOOL, equal, cost=cost.compared),
    function("_!=_", (A, A), BOOL, not_equal, cost=cost.compared),
    *_order("_<_", less),
    *_order("_<=_", less_or_equal),
    *_order("_>_", greater),
    *_order("_>=_", greater_or_equal),
    *_sizes(),
    # The compiler has closures of its own for these; here they only have their types.
    function("_?_:_", (BOOL, A, A), A, _decided_elsewhere),
    function("@in", (A, list_of(A)), BOOL, _decided_elsewhere, cost=cost.members),
    function("@in", (A, map_of(A, B)), BOOL, _decided_elsewhere),
    function("_[_]", (list_of(A), INT), A, _decided_elsewhere),
    function("_[_]", (map_of(A, B), A), B, _decided_elsewhere),
)
