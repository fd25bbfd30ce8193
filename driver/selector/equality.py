"""When two values are equal, and which of two comes first.

Source: cel-go's `Equal` and `Compare` of every type, and those of Kubernetes' types. Numbers of
different types compare by value; Kubernetes' types refuse to be compared with anything else.
"""

import math
from typing import Protocol, runtime_checkable

from driver.selector.errors import AbortError, CelError, no_such_overload
from driver.selector.values import Duration, Optional, Timestamp, TypeValue, Uint

_MAX_STEPS = 20_000
_PLAIN = frozenset({bool, int, str, bytes, Uint})
_NUMBERS = frozenset({int, Uint, float})
# The types whose values have an order.
ORDERED = frozenset({bool, int, Uint, float, str, bytes, Duration, Timestamp})


@runtime_checkable
class Comparable(Protocol):
    """A value that knows itself what it equals; raises `CelError` for another type."""

    def equals(self, other: object) -> bool:
        """Whether the other value is the same."""


class _Steps:
    """How much of a comparison is left; values that share parts can be exponentially big."""

    def __init__(self) -> None:
        self._left = _MAX_STEPS

    def take(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise AbortError("operation cancelled: values too large to compare")


def equal(left: object, right: object) -> bool:
    """`left == right`; raises `CelError` where the types refuse to be compared."""
    kind = type(left)
    if kind is type(right) and kind in _PLAIN:
        return left == right
    if isinstance(left, (list, dict, Optional)):
        return _deep(left, right, _Steps())
    return _flat(left, right)


def _flat(left: object, right: object) -> bool:
    if left is None or right is None:
        return left is right
    kind, other = type(left), type(right)
    if kind in _NUMBERS:
        return other in _NUMBERS and _equal_numbers(left, right)
    if isinstance(left, (bool, str, bytes, Duration, Timestamp, TypeValue)):
        return kind is other and left == right
    if isinstance(left, Comparable):
        return left.equals(right)
    raise no_such_overload("_==_")


def _equal_numbers(left: object, right: object) -> bool:
    if isinstance(left, float) or isinstance(right, float):
        return float(left) == float(right)  # type: ignore[arg-type]
    return left == right


def _deep(left: object, right: object, steps: _Steps) -> bool:
    steps.take()
    if isinstance(left, list):
        return (
            isinstance(right, list)
            and len(left) == len(right)
            and all(_same(one, other, steps) for one, other in zip(left, right, strict=True))
        )
    if isinstance(left, dict):
        return isinstance(right, dict) and _equal_maps(left, right, steps)
    if isinstance(left, Optional):
        if not isinstance(right, Optional) or left.present != right.present:
            return False
        return not left.present or _deep(left.value, right.value, steps)
    return _flat(left, right)


def _equal_maps(left: dict[object, object], right: dict[object, object], steps: _Steps) -> bool:
    if len(left) != len(right):
        return False
    missing = object()
    for key, value in left.items():
        other = right.get(key, missing)
        if other is missing or not _same(value, other, steps):
            return False
    return True


def _same(left: object, right: object, steps: _Steps) -> bool:
    """Equality inside of a list or map: what cannot be compared is not equal."""
    try:
        return _deep(left, right, steps)
    except CelError:
        return False


def same(left: object, right: object) -> bool:
    """Equality as lists and sets see it: what cannot be compared is not equal."""
    try:
        return equal(left, right)
    except CelError:
        return False


def compare(left: object, right: object) -> int:
    """-1, 0 or 1 as left comes before, with or after right; raises `CelError` otherwise."""
    kind, other = type(left), type(right)
    if kind is other and kind in _PLAIN:
        return _order(left, right)
    if kind in _NUMBERS and other in _NUMBERS:
        return _compare_numbers(left, right)
    if kind is other and isinstance(left, (Duration, Timestamp)):
        return _order(left.nanos, right.nanos)  # type: ignore[attr-defined]
    raise no_such_overload()


def _compare_numbers(left: object, right: object) -> int:
    if isinstance(left, float) or isinstance(right, float):
        one, two = float(left), float(right)  # type: ignore[arg-type]
        if math.isnan(one) or math.isnan(two):
            raise CelError("NaN values cannot be ordered")
        return _order(one, two)
    return _order(left, right)


def _order(left: object, right: object) -> int:
    before: bool = left < right  # type: ignore[operator]
    return -1 if before else int(left != right)
