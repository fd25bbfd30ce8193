"""How a function of the language is declared: its types, what runs, what it costs."""

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from driver.selector.cost import Cost
from driver.selector.types import Type

# The arguments' types are the declaration's own; the dispatcher checks them before the call.
Run: TypeAlias = Callable[..., object]


class Overload(msgspec.Struct, frozen=True):
    """One way of calling a function; of a method the target is the first parameter."""

    function: str
    params: tuple[Type, ...]
    result: Type
    run: Run
    cost: Cost = 1
    method: bool = False
    # Whether the values' types are checked before the call; if not, `run` does it.
    guarded: bool = True


def function(
    name: str, params: tuple[Type, ...], result: Type, run: Run, *, cost: Cost = 1
) -> Overload:
    """Declare `name(params)`."""
    return Overload(name, params, result, run, cost)


def method(
    name: str, params: tuple[Type, ...], result: Type, run: Run, *, cost: Cost = 1
) -> Overload:
    """Declare `params[0].name(params[1:])`."""
    return Overload(name, params, result, run, cost, method=True)
