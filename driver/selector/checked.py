"""What is known of an expression once it is checked."""

import msgspec

from driver.selector.functions.library import Overload
from driver.selector.types import Type


class Checked(msgspec.Struct, frozen=True):
    """What the checker found out, by the numbers of the nodes.

    `overloads` are those a call may reach; `functions` are calls whose target is only the first
    part of a function's name; `types` are names that mean a type.
    """

    result: Type
    overloads: dict[int, tuple[Overload, ...]]
    functions: dict[int, str]
    types: dict[int, Type]
