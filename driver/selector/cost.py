"""What an evaluation costs, in the units of cel-go, and where it must stop.

Source: cel-go's run time cost tracker and the estimator of Kubernetes' libraries. A call is charged
before it is made, so that no call can grow beyond what the limit pays for.
"""

import math
from collections.abc import Callable
from typing import Final, TypeAlias

from driver.selector.errors import AbortError
from driver.selector.values import Optional, size_of

# `CELSelectorExpressionMaxCost` of resource.k8s.io.
LIMIT: Final = 1_000_000
# What no evaluation may build, though cel-go's accounting would let it: CEL's lists grow by
# reference in Go, ours by copy.
MAX_ELEMENTS: Final = 100_000
MAX_CHARACTERS: Final = 250_000

LIST_CREATE: Final = 10
MAP_CREATE: Final = 30
STRUCT_CREATE: Final = 40

Args: TypeAlias = tuple[object, ...]
Cost: TypeAlias = int | Callable[[Args], int]

_STRING_FACTOR = 0.1
_REGEX_FACTOR = 0.25
_COPY = 100
_NESTED = 10


def limit_exceeded() -> AbortError:
    """The end of an evaluation that costs too much."""
    return AbortError("operation cancelled: actual cost limit exceeded")


def traversal(size: int) -> int:
    """Walking once over a text of this size."""
    return math.ceil(size * _STRING_FACTOR)


def scan(args: Args) -> int:
    """Reading the first argument once."""
    return traversal(size_of(args[0]))


def rewrite(args: Args) -> int:
    """Reading the first argument and writing it anew."""
    return math.ceil(size_of(args[0]) * 2 * _STRING_FACTOR)


def join(args: Args) -> int:
    """Writing the joined text, read off its parts."""
    parts = args[0] if isinstance(args[0], list) else []
    separator = size_of(args[1]) if len(args) > 1 else 0
    total = sum(size_of(part) for part in parts) + separator * max(0, len(parts) - 1)
    return math.ceil(total * 2 * _STRING_FACTOR)


def concatenate(args: Args) -> int:
    """Copying both texts."""
    return traversal(size_of(args[0]) + size_of(args[1]))


def shorter(args: Args) -> int:
    """Comparing up to the end of the shorter value; what has no size costs as one character."""
    return traversal(min(size_of(args[0]), size_of(args[1])))


def substring(args: Args) -> int:
    """Looking for one text in another."""
    return traversal(size_of(args[0])) * traversal(size_of(args[1]))


def regex(args: Args) -> int:
    """Running a pattern over a text."""
    return pattern_cost(size_of(args[0]), size_of(args[1]))


def pattern_cost(text: int, pattern: int) -> int:
    """Running a pattern of this length over a text of that length."""
    return traversal(1 + text) * math.ceil(pattern * _REGEX_FACTOR)


def members(args: Args) -> int:
    """Looking at every member of the second argument."""
    return size_of(args[1])


def each(args: Args) -> int:
    """Looking at every element of a list, and reading what is text in it."""
    first = args[0]
    if not isinstance(first, list):
        return traversal(size_of(first))
    return sum(
        traversal(len(element)) if isinstance(element, (str, bytes)) else 1 for element in first
    )


def pairs(args: Args) -> int:
    """Comparing every element of one list with every one of the other."""
    left, right = size_of(args[0]), size_of(args[1])
    inner = nested(args[0]) * right + nested(args[1]) * left
    return 1 + left * right + inner // _NESTED


def pairs_twice(args: Args) -> int:
    """Comparing both ways."""
    return 2 * pairs(args) - 1


def self_pairs(args: Args) -> int:
    """Comparing every element of a list with every other, twice, into a new list."""
    first = args[0]
    factor = 2.0
    if isinstance(first, list) and first and isinstance(first[0], (str, bytes)):
        factor += _STRING_FACTOR
    return (
        1
        + LIST_CREATE
        + int(size_of(first) ** 2 * factor)
        + size_of(first) * nested(first) // _NESTED
    )


def key_pairs(args: Args) -> int:
    """Comparing every key of a sort with every other."""
    return self_pairs(args[1:])


def new_list(args: Args) -> int:
    """Building a list as long as the first one."""
    return 1 + LIST_CREATE + size_of(args[0])


def part_of_list(args: Args) -> int:
    """Building a list of the elements between two positions."""
    start, end = args[1], args[2]
    length = end - start if isinstance(start, int) and isinstance(end, int) else 0
    return 1 + LIST_CREATE + max(0, length)


def counted_list(args: Args) -> int:
    """Building a list of as many elements as the number says."""
    return 1 + LIST_CREATE + (max(0, args[0]) if isinstance(args[0], int) else 0)


# Copies and nested values are nearly free in cel-go, which keeps references. They are not here,
# so what an ordinary selector never has is charged on top: a hundredth of what is copied beyond a
# few hundred elements, and a tenth of what lies inside of nested lists and maps.


def joined_lists(args: Args) -> int:
    """Copying two lists into one."""
    return 1 + (size_of(args[0]) + size_of(args[1])) // _COPY


def replaced(args: Args) -> int:
    """Rewriting a text with longer parts in it."""
    text, old, new = args[:3]
    if not (isinstance(text, str) and isinstance(old, str) and isinstance(new, str)):
        return 1
    return rewrite(args) + text.count(old) * len(new) // (_COPY * _COPY)


def flattened(args: Args) -> int:
    """Opening the lists in a list, as often as the depth says."""
    depth = args[1] if len(args) > 1 and isinstance(args[1], int) else 1
    return 1 + LIST_CREATE + max(0, depth) * size_of(args[0]) + nested(args[0]) // _NESTED


def compared(args: Args) -> int:
    """Comparing two values that may nest."""
    return shorter(args) + (nested(args[0]) + nested(args[1])) // _NESTED


def searched(args: Args) -> int:
    """Comparing every element of a list with a value."""
    return each(args) + (nested(args[0]) + size_of(args[0]) * nested(args[1])) // _NESTED


def inside(args: Args) -> int:
    """`value in list`: looking at every member."""
    return members(args) + (nested(args[1]) + size_of(args[1]) * nested(args[0])) // _NESTED


def written(args: Args) -> int:
    """Writing values into a text."""
    return 1 + sum(nested(arg) // _NESTED + size_of(arg) // _COPY for arg in _parts(args[1]))


def _parts(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def nested(value: object) -> int:
    """How many values lie in the lists, maps and optionals inside of a value."""
    if not isinstance(value, (list, dict, Optional)):
        return 0
    count = 0
    left = [part for part in _inside(value) if _inside(part)]
    while left and count < LIMIT:
        parts = _inside(left.pop())
        count += len(parts)
        left += [part for part in parts if isinstance(part, (list, dict, Optional))]
    return count


def _inside(value: object) -> list[object]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return [*value.values()]
    return [value.value] if isinstance(value, Optional) else []
