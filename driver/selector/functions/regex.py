"""Regular expressions: RE2's, as Go has them."""

import re
from functools import lru_cache
from typing import Protocol, cast

import re2

from driver.selector import cost
from driver.selector.errors import CelError
from driver.selector.functions.library import Overload, function, method
from driver.selector.types import BOOL, INT, STRING, list_of

# Functions whose second argument, when constant, must be a pattern already at compile time.
PATTERN_FUNCTIONS = frozenset({"matches", "find", "findAll"})

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
# Bounds what all remembered patterns hold together; no sane pattern comes near.
_OPTIONS.max_mem = 2 << 20
_MAX_PATTERN = 10_240
# RE2 matches a single byte with this; Go does not know it.
_ONE_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")


class _Match(Protocol):
    def span(self) -> tuple[int, int]: ...
    def group(self) -> str: ...


class _Pattern(Protocol):
    def search(self, text: str) -> _Match | None: ...


@lru_cache(maxsize=256)
def pattern(text: str) -> _Pattern:
    """The compiled pattern; raises `CelError` with RE2's reason."""
    if len(text) > _MAX_PATTERN:
        raise CelError(f"error parsing regexp: pattern of {len(text)} characters is too large")
    if _ONE_BYTE.search(text):
        raise CelError("error parsing regexp: invalid escape sequence: `\\C`")
    try:
        return cast("_Pattern", re2.compile(text, _OPTIONS))
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if error.args else "invalid pattern"
        raise CelError(f"error parsing regexp: {reason}") from None


def _matches(text: str, expression: str) -> bool:
    return pattern(expression).search(text) is not None


def _find(text: str, expression: str) -> str:
    match = pattern(expression).search(text)
    return match.group() if match else ""


def _find_all(text: str, expression: str, limit: int = -1) -> list[object]:
    """All matches; an empty one right behind another is none, as in Go."""
    found: list[object] = []
    start, end = 0, -1
    compiled = pattern(expression)
    for match in re2.finditer(compiled, text):
        if len(found) == limit:
            break
        start, stop = match.span()
        if start < stop or start != end:
            found.append(match.group())
        end = stop
    return found


_PAIR = (STRING, STRING)

OVERLOADS: tuple[Overload, ...] = (
    function("matches", _PAIR, BOOL, _matches, cost=cost.regex),
    method("matches", _PAIR, BOOL, _matches, cost=cost.regex),
    method("find", _PAIR, STRING, _find, cost=cost.regex),
    method("findAll", _PAIR, list_of(STRING), _find_all, cost=cost.regex),
    method("findAll", (*_PAIR, INT), list_of(STRING), _find_all, cost=cost.regex),
)
