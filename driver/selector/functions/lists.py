"""Lists: cel-go's lists library, version 3, and Kubernetes' own.

Elements that cannot be ordered, or are of different types, are CEL errors.
"""

import itertools
from collections.abc import Callable
from functools import cmp_to_key

from driver.selector import cost
from driver.selector.cost import LIMIT, MAX_ELEMENTS, limit_exceeded
from driver.selector.equality import ORDERED, compare, same
from driver.selector.errors import CelError, no_such_overload
from driver.selector.functions.library import Overload, function, method
from driver.selector.functions.times import span
from driver.selector.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    A,
    Type,
    list_of,
    optional_of,
)
from driver.selector.values import ABSENT, Duration, Optional, Uint, int64, uint64

List = list[object]

# An empty list counts as one of the first of these.
_COMPARABLE = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)


def _slice(items: List, start: int, end: int) -> List:
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(
            f"cannot slice({start}, {end}), start index must be less than or equal to end index"
        )
    if end > len(items):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _flatten(items: object, depth: object = 1) -> List:
    if not isinstance(items, list) or type(depth) is not int:
        raise no_such_overload("flatten")
    if depth < 0:
        raise CelError("level must be non-negative")
    flat = items
    # A level that changes nothing is the last; the others are bounded by what a list may hold.
    for _ in range(min(depth, MAX_ELEMENTS)):
        if not any(isinstance(item, list) for item in flat):
            break
        flat = _flatten_once(flat)
    return flat


def _flatten_once(items: List) -> List:
    flat: List = []
    for item in items:
        flat.extend(item if isinstance(item, list) else (item,))
        if len(flat) > MAX_ELEMENTS:
            raise limit_exceeded()
    return flat


def _distinct(items: List) -> List:
    found: List = []
    for item in items:
        if not any(same(item, other) for other in found):
            found.append(item)
    return found


def _range(count: int) -> List:
    if count < 0:
        raise CelError(f"lists.range: size must be non-negative, got {count}")
    if count > LIMIT:
        raise limit_exceeded()
    return [*range(count)]


def _sort(items: List) -> List:
    return _sort_by(items, items)


def _sort_by(items: List, keys: List) -> List:
    if len(items) != len(keys):
        raise CelError("@sortByAssociatedKeys: there must be as many keys as elements")
    if any(type(key) is not type(keys[0]) for key in keys):
        raise CelError("list elements must have the same type")
    order = cmp_to_key(_order)
    _check_ordered(keys[:1])
    return [item for _, item in sorted(zip(keys, items, strict=True), key=lambda p: order(p[0]))]


def _check_ordered(items: List) -> None:
    if not all(type(item) in ORDERED for item in items):
        raise no_such_overload()


def _order(left: object, right: object) -> int:
    """As `compare`; what cannot be compared is in order as it stands, cel-go looks no closer."""
    try:
        return compare(left, right)
    except CelError:
        return 0


def _is_sorted(items: List) -> bool:
    _check_ordered(items)
    return all(_order(one, other) <= 0 for one, other in itertools.pairwise(items))


def _best(name: str, wanted: int) -> Callable[[List], object]:
    def best(items: List) -> object:
        if not items:
            raise CelError(f"{name} called on empty list")
        _check_ordered(items)
        found = items[0]
        for item in items[1:]:
            if _order(item, found) == wanted:
                found = item
        return found

    return best


def _sum(kind: Type) -> Callable[[List], object]:
    zero: object = {"double": 0.0, "uint": Uint(0), "duration": Duration(0)}.get(kind.kind, 0)

    def total(items: List) -> object:
        found = zero
        for item in items:
            found = _plus(found, item)
        return found

    return total


def _plus(left: object, right: object) -> object:
    if type(left) is not type(right):
        raise no_such_overload("sum")
    if isinstance(left, Duration) and isinstance(right, Duration):
        return span(left.nanos + right.nanos)
    if isinstance(left, float) and isinstance(right, float):
        return left + right
    if isinstance(left, int) and isinstance(right, int):
        return uint64(left + right) if isinstance(left, Uint) else int64(left + right)
    raise no_such_overload("sum")


def _index_of(items: List, wanted: object) -> int:
    return next((i for i, item in enumerate(items) if same(item, wanted)), -1)


def _last_index_of(items: List, wanted: object) -> int:
    return next((i for i in reversed(range(len(items))) if same(items[i], wanted)), -1)


def _includes(holder: object, wanted: object) -> bool:
    if isinstance(holder, list):
        return any(same(item, wanted) for item in holder)
    return same(holder, wanted)


def _end(position: int) -> Callable[[List], Optional]:
    return lambda items: Optional(items[position]) if items else ABSENT


def _of_comparable() -> list[Overload]:
    found: list[Overload] = []
    for kind in _COMPARABLE:
        items = (list_of(kind),)
        found += [
            method("isSorted", items, BOOL, _is_sorted, cost=cost.each),
            method("min", items, kind, _best("min", -1), cost=cost.each),
            method("max", items, kind, _best("max", 1), cost=cost.each),
            method("sort", items, list_of(kind), _sort, cost=cost.self_pairs),
            method(
                "@sortByAssociatedKeys",
                (list_of(A), list_of(kind)),
                list_of(A),
                _sort_by,
                cost=cost.key_pairs,
            ),
        ]
    return found


_LIST = list_of(A)

OVERLOADS: tuple[Overload, ...] = (
    *_of_comparable(),
    *(
        method("sum", (list_of(kind),), kind, _sum(kind), cost=cost.each)
        for kind in (INT, UINT, DOUBLE, DURATION)
    ),
    method("distinct", (_LIST,), _LIST, _distinct, cost=cost.self_pairs),
    method("first", (_LIST,), optional_of(A), _end(0)),
    method("last", (_LIST,), optional_of(A), _end(-1)),
    # cel-go lets a list that only turns out to be flat at run time pass.
    Overload("flatten", (list_of(_LIST),), _LIST, _flatten, cost.flattened, True, False),
    Overload("flatten", (list_of(DYN), INT), list_of(DYN), _flatten, cost.flattened, True, False),
    method("reverse", (_LIST,), _LIST, lambda items: items[::-1], cost=cost.new_list),
    method("slice", (_LIST, INT, INT), _LIST, _slice, cost=cost.part_of_list),
    function("lists.range", (INT,), list_of(INT), _range, cost=cost.counted_list),
    method("indexOf", (_LIST, A), INT, _index_of, cost=cost.searched),
    method("lastIndexOf", (_LIST, A), INT, _last_index_of, cost=cost.searched),
    method("includes", (DYN, DYN), BOOL, _includes, cost=cost.searched),
)
