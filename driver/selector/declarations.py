"""Which functions the language has: every library's overloads, by name."""

from collections.abc import Callable
from typing import Final

from driver.selector.functions import (
    authorization,
    cidr,
    conversions,
    ip,
    lists,
    named_format,
    operators,
    optionals,
    quantity,
    regex,
    semver,
    sets,
    strings,
    text_format,
    times,
    url,
)
from driver.selector.functions.cidr import CidrValue
from driver.selector.functions.ip import IpValue
from driver.selector.functions.library import Overload
from driver.selector.functions.named_format import FormatValue
from driver.selector.functions.quantity import QuantityValue
from driver.selector.functions.semver import SemverValue
from driver.selector.functions.url import UrlValue
from driver.selector.types import Type
from driver.selector.values import Duration, Timestamp, TypeValue, Uint
from driver.selector.values import Optional as OptionalValue

_LIBRARIES = (
    authorization,
    cidr,
    conversions,
    ip,
    lists,
    named_format,
    operators,
    optionals,
    quantity,
    regex,
    semver,
    sets,
    strings,
    text_format,
    times,
    url,
)


def _by_name() -> dict[str, tuple[Overload, ...]]:
    found: dict[str, list[Overload]] = {}
    for library in _LIBRARIES:
        for overload in library.OVERLOADS:
            found.setdefault(overload.function, []).append(overload)
    return {name: tuple(overloads) for name, overloads in found.items()}


FUNCTIONS: Final = _by_name()

# Conversions that cel-go works out at compile time when their argument is a constant.
CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)

_CLASSES: dict[str, type] = {
    "bool": bool,
    "int": int,
    "uint": Uint,
    "double": float,
    "string": str,
    "bytes": bytes,
    "duration": Duration,
    "timestamp": Timestamp,
    "null": type(None),
    "type": TypeValue,
    "opaque": OptionalValue,
}

_STRUCTS: dict[str, type] = {
    QuantityValue.cel_type: QuantityValue,
    SemverValue.cel_type: SemverValue,
    UrlValue.cel_type: UrlValue,
    IpValue.cel_type: IpValue,
    CidrValue.cel_type: CidrValue,
    FormatValue.cel_type: FormatValue,
}


class _Nothing:
    """The class of a type that no value has."""


Test = Callable[[object], bool]


def plain_class(wanted: Type) -> type | None:
    """The class of all values of a type; None where the class alone does not tell."""
    return (
        _STRUCTS.get(wanted.name, _Nothing)
        if wanted.kind == "struct"
        else _CLASSES.get(wanted.kind)
    )


def argument_tests(overload: Overload) -> "tuple[Test | None, ...]":
    """The test of every argument of a call; none where the function itself does it."""
    if not overload.guarded:
        return (None,) * len(overload.params)
    return tuple(map(runtime_test, overload.params))


def runtime_test(wanted: Type) -> Test | None:
    """Whether a value may be passed where this type is declared; None when any may.

    Of a list only the first element is looked at, as cel-go does.
    """
    if wanted.kind in ("dyn", "param"):
        return None
    if wanted.kind == "list":
        return _list_test(runtime_test(wanted.params[0]))
    if wanted.kind == "map":
        return lambda value: isinstance(value, dict)
    cls = plain_class(wanted)
    return lambda value: type(value) is cls


def _list_test(element: Test | None) -> Test:
    if element is None:
        return lambda value: type(value) is list
    return lambda value: isinstance(value, list) and (not value or element(value[0]))
