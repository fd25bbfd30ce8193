"""What a check comes to: one line, and what to do about it."""

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from driver.model.names import DOMAIN

API_VERSION = f"{DOMAIN}/v1alpha1"


class Level(StrEnum):
    """How bad it is. What could not be looked at is neither good nor bad."""

    OK = "ok"
    SKIP = "skip"
    WARN = "warn"
    FAIL = "fail"


class Finding(msgspec.Struct, frozen=True):
    """One line of the checklist; `todo` is empty where there is nothing to do."""

    check: str
    level: Level
    said: str
    todo: str = ""


class Checkup(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """All of it; healthy when nothing fails."""

    api_version: str = API_VERSION
    kind: str = "Checkup"
    healthy: bool
    findings: tuple[Finding, ...]


def checkup(findings: Iterable[Finding]) -> Checkup:
    """The list, and what it means as a whole."""
    found = tuple(findings)
    return Checkup(healthy=all(one.level != Level.FAIL for one in found), findings=found)


def ok(check: str, said: str) -> Finding:
    """All is well."""
    return Finding(check, Level.OK, said)


def skip(check: str, said: str, todo: str = "") -> Finding:
    """Nobody could look."""
    return Finding(check, Level.SKIP, said, todo)


def warn(check: str, said: str, todo: str) -> Finding:
    """It works, but not as it should."""
    return Finding(check, Level.WARN, said, todo)


def fail(check: str, said: str, todo: str) -> Finding:
    """Something does not work."""
    return Finding(check, Level.FAIL, said, todo)
