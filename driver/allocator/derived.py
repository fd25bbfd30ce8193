"""The value of an attribute that a request computes from a device itself (KEP-6080)."""

from driver.allocator.attributes import Element, Values
from driver.selector.device import SelectorDevice
from driver.selector.errors import EvaluationError
from driver.selector.functions.semver import SemverValue
from driver.selector.program import compile_expression


def derive(expression: str, device: SelectorDevice) -> Values:
    """The value of the expression for the device.

    Raises `SelectorError` where it has none, or one that no attribute can have.
    """
    result = compile_expression(expression).value(device)
    if isinstance(result, list):
        return Values(frozenset(_element(one, expression) for one in result), listed=True)
    return Values(frozenset((_element(result, expression),)))


def _element(value: object, expression: str) -> Element:
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, int):
        return "int", int(value)
    if isinstance(value, str):
        return "string", value
    if isinstance(value, SemverValue):
        return "version", _text(value)
    raise EvaluationError(
        f"derived attribute {expression!r} gives a {type(value).__name__}: expected string, int, "
        "bool, version or a list of them"
    )


def _text(version: SemverValue) -> str:
    """The version as it is published: semver has one spelling of each, but for build metadata."""
    numbers = f"{version.major}.{version.minor}.{version.patch}"
    words = ".".join(word or str(number) for _, number, word in version.prerelease)
    return f"{numbers}-{words}" if words else numbers
