"""Lists taken as sets: cel-go's sets library."""

from driver.selector import cost
from driver.selector.equality import same
from driver.selector.functions.library import Overload, function
from driver.selector.types import BOOL, A, list_of


def _contains(items: list[object], wanted: list[object]) -> bool:
    return all(any(same(one, item) for item in items) for one in wanted)


def _equivalent(left: list[object], right: list[object]) -> bool:
    return _contains(left, right) and _contains(right, left)


def _intersects(left: list[object], right: list[object]) -> bool:
    return any(same(one, other) for one in left for other in right)


_PAIR = (list_of(A), list_of(A))

OVERLOADS: tuple[Overload, ...] = (
    function("sets.contains", _PAIR, BOOL, _contains, cost=cost.pairs),
    function("sets.equivalent", _PAIR, BOOL, _equivalent, cost=cost.pairs_twice),
    function("sets.intersects", _PAIR, BOOL, _intersects, cost=cost.pairs),
)
