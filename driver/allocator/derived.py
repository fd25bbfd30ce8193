"""The value of an attribute that a request computes from a device itself (KEP-6080)."""

from functools import lru_cache

from driver.allocator.attributes import Element, Values
from driver.selector.checker import check
from driver.selector.compiler import Compiler
from driver.selector.device import SelectorDevice
from driver.selector.errors import AbortError, CelError, CompileError, EvaluationError
from driver.selector.frame import Frame, Run
from driver.selector.functions.semver import SemverValue
from driver.selector.parser import parse


def derive(expression: str, device: SelectorDevice) -> Values:
    """The value of the expression for the device.

    Raises `SelectorError` where it has none, or one that no attribute can have.
    """
    if device.broken is not None:
        raise EvaluationError(device.broken)
    run, variables = _compiled(expression)
    try:
        result = run(Frame(device, variables))
    except (CelError, AbortError) as error:
        raise EvaluationError(str(error)) from error
    if isinstance(result, list):
        return Values(frozenset(_element(one, expression) for one in result), listed=True)
    return Values(frozenset((_element(result, expression),)))


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> tuple[Run, int]:
    try:
        node = parse(expression)
        compiler = Compiler(check(node), counting=True)
        return compiler.compile(node).run, compiler.variables
    except RecursionError:
        raise CompileError(f"derived attribute {expression!r} nests too deep") from None


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
