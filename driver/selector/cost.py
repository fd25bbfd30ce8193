"""What an evaluation costs, in the units of cel-go, and where it must stop.

Source: cel-go's run time cost tracker and the estimator of Kubernetes' libraries. A call is charged
before it is made, so that no call can grow beyond what the limit pays for.
"""

import math
from collections.abc import Callable
from typing import Final, TypeAlias

from driver.selector.errors import AbortError
from driver.selector.values import size_of

# `CELSelectorExpressionMaxCost` of resource.k8s.io.
LIMIT: Final = 1_000_000
# What no evaluation may build, though cel-go's accounting would let it: CEL's lists grow by
# reference in Go, ours by copy.
MAX_ELEMENTS: Final = 100_000
MAX_CHARACTERS: Final = 10_000_000

LIST_CREATE: Final = 10
MAP_CREATE: Final = 30
STRUCT_CREATE: Final = 40

Args: TypeAlias = tuple[object, ...]
Cost: TypeAlias = int | Callable[[Args], int]

_STRING_FACTOR = 0.1
_REGEX_FACTOR = 0.25


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
    return 1 + size_of(args[0]) * size_of(args[1])


def pairs_twice(args: Args) -> int:
    """Comparing both ways."""
    return 1 + 2 * size_of(args[0]) * size_of(args[1])


def self_pairs(args: Args) -> int:
    """Comparing every element of a list with every other."""
    return LIST_CREATE + size_of(args[0]) ** 2


def new_list(args: Args) -> int:
    """Building a list as long as the first one."""
    return LIST_CREATE + size_of(args[0])


def counted_list(args: Args) -> int:
    """Building a list of as many elements as the number says."""
    return LIST_CREATE + (args[0] if isinstance(args[0], int) else 0)
