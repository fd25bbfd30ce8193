"""Semantic versions in an expression.

Source: `kubernetes.Semver` on blang/semver v4: strict reading, optional normalisation, and build
metadata that no comparison looks at.
"""

import re
from functools import lru_cache
from typing import ClassVar

import msgspec

from driver.selector import cost
from driver.selector.errors import CelError, no_such_overload
from driver.selector.functions.library import Overload, function, method
from driver.selector.types import BOOL, INT, SEMVER, STRING
from driver.selector.values import INT_MAX, UINT_MAX

_NUMBER = re.compile(r"0|[1-9][0-9]{0,19}")

_DIGITS = re.compile(r"[0-9]+")
_IDENTIFIER = re.compile(r"[0-9A-Za-z-]+")
_PARTS = 3
_MAX_REMEMBERED = 256

# How a prerelease identifier sorts: numbers by value and before words.
_Identifier = tuple[int, int, str]


class SemverValue(msgspec.Struct, frozen=True, eq=False):
    """One version; a release sorts after all its prereleases."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[_Identifier, ...] = ()

    cel_type: ClassVar[str] = SEMVER.name
    # Go cannot use such a value as a map key, and cel-go's evaluation ends there.
    unhashable: ClassVar[bool] = True

    def equals(self, other: object) -> bool:
        """Whether both have the same precedence."""
        if not isinstance(other, SemverValue):
            raise no_such_overload()
        return self.precedence() == other.precedence()

    def precedence(self) -> tuple[int, int, int, bool, tuple[_Identifier, ...]]:
        """What versions are compared by."""
        return self.major, self.minor, self.patch, not self.prerelease, self.prerelease


def parse(text: str) -> SemverValue:
    """Read a version; raises `CelError`."""
    return _remembered(text) if len(text) <= _MAX_REMEMBERED else _read(text)


def _read(text: str) -> SemverValue:
    parts = text.split(".", _PARTS - 1)
    if len(parts) != _PARTS:
        raise CelError("No Major.Minor.Patch elements found")
    rest, plus, build = parts[2].partition("+")
    patch, dash, prerelease = rest.partition("-")
    if plus and not all(_IDENTIFIER.fullmatch(one) for one in build.split(".")):
        raise CelError(f"Invalid build metadata {build[:64]!r}")
    identifiers = tuple(map(_identifier, prerelease.split("."))) if dash else ()
    return SemverValue(_number(parts[0]), _number(parts[1]), _number(patch), identifiers)


_remembered = lru_cache(maxsize=4096)(_read)


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text) or int(text) > UINT_MAX:
        raise CelError(f"Invalid number {text[:64]!r} in a version")
    return int(text)


def _identifier(text: str) -> _Identifier:
    if _DIGITS.fullmatch(text):
        return 0, _number(text), ""
    if not _IDENTIFIER.fullmatch(text):
        raise CelError(f"Invalid prerelease identifier {text[:64]!r}")
    return 1, 0, text


def parse_normalized(text: str, normalize: bool) -> SemverValue:  # noqa: FBT001 - CEL's argument
    """Read a version after taking off a leading v and zeros, and filling up to three numbers."""
    if not normalize:
        return parse(text)
    parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", _PARTS - 1)]
    if len(parts) < _PARTS:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise CelError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (_PARTS - len(parts))
    return parse(".".join(parts))


def _without_zeros(part: str) -> str:
    if len(part) <= 1:
        return part
    part = part.lstrip("0")
    return part if part[:1] in tuple("0123456789") else f"0{part}"


def _is_semver(text: str, normalize: bool = False) -> bool:  # noqa: FBT001, FBT002
    try:
        parse_normalized(text, normalize)
    except CelError:
        return False
    return True


def _compare(left: SemverValue, right: SemverValue) -> int:
    one, other = left.precedence(), right.precedence()
    return (one > other) - (one < other)


def _signed(number: int) -> int:
    """An unsigned number as Go turns it into a signed one."""
    return number if number <= INT_MAX else number - UINT_MAX - 1


_PAIR = (SEMVER, SEMVER)

OVERLOADS: tuple[Overload, ...] = (
    function("semver", (STRING,), SEMVER, parse, cost=cost.scan),
    function("semver", (STRING, BOOL), SEMVER, parse_normalized, cost=cost.scan),
    function("isSemver", (STRING,), BOOL, _is_semver, cost=cost.scan),
    function("isSemver", (STRING, BOOL), BOOL, _is_semver, cost=cost.scan),
    method("isGreaterThan", _PAIR, BOOL, lambda a, b: _compare(a, b) > 0),
    method("isLessThan", _PAIR, BOOL, lambda a, b: _compare(a, b) < 0),
    method("compareTo", _PAIR, INT, _compare),
    method("major", (SEMVER,), INT, lambda version: _signed(version.major)),
    method("minor", (SEMVER,), INT, lambda version: _signed(version.minor)),
    method("patch", (SEMVER,), INT, lambda version: _signed(version.patch)),
)
