"""Which programs cannot reach the cost limit, so that nobody need count.

A bound on what one evaluation may cost where nothing loops and no text grows: usual selectors are
like that, and evaluate twice as fast without counting.
"""

import math
from typing import Final

from driver.selector.checked import Checked
from driver.selector.cost import LIMIT, MAP_CREATE, pattern_cost
from driver.selector.functions.library import Overload
from driver.selector.syntax import (
    Bind,
    Call,
    Fold,
    ListNode,
    Literal,
    MapNode,
    Node,
    OptMap,
    Select,
    StructNode,
)

# The longest value of a device for which the bound holds; the API allows 64 characters.
SMALL: Final = 256

# Functions that cost what their arguments are long, and give nothing longer.
_READING = {
    "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in", "startsWith", "endsWith", "contains",
    "lowerAscii", "upperAscii", "trim", "substring", "quantity", "isQuantity", "semver",
    "isSemver", "indexOf", "lastIndexOf",
}  # fmt: skip
_PATTERN = frozenset({"matches", "find"})


def is_cheap(node: Node, checked: Checked) -> bool:
    """Whether no evaluation on a device with small values reaches the limit."""
    return _worst(node, checked, _longest(node)) < LIMIT


def _longest(node: Node) -> int:
    own = SMALL
    if isinstance(node, Literal) and isinstance(node.value, (str, bytes)):
        own = len(node.value)
    elif isinstance(node, ListNode):
        own = len(node.elements)
    return max([SMALL, own, *map(_longest, _children(node))])


def _worst(node: Node, checked: Checked, longest: int) -> float:
    if isinstance(node, (Fold, OptMap, StructNode)):
        return math.inf
    own: float = MAP_CREATE
    if isinstance(node, Call):
        own += max([0, *(_call(one, longest) for one in checked.overloads.get(node.id, ()))])
    return own + sum(_worst(child, checked, longest) for child in _children(node))


def _call(overload: Overload, longest: int) -> float:
    if overload.function in _PATTERN:
        return pattern_cost(longest, longest)
    if overload.function in _READING:
        # Looking for one text in another costs a hundredth of the product of their lengths.
        return longest + longest**2 / 100
    if isinstance(overload.cost, int) and overload.result.kind != "list":
        return overload.cost
    return math.inf


def _children(node: Node) -> tuple[Node, ...]:
    if isinstance(node, Call):
        return node.args if node.target is None else (node.target, *node.args)
    if isinstance(node, Select):
        return (node.operand,)
    if isinstance(node, ListNode):
        return node.elements
    if isinstance(node, MapNode):
        return tuple(part for entry in node.entries for part in (entry.key, entry.value))
    if isinstance(node, Bind):
        return node.value, node.body
    if isinstance(node, OptMap):
        return node.target, node.body
    return ()
