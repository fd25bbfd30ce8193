"""Claims as a table like kubectl's, and for spreadsheets."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from rich.text import Text

from driver.cli.fleet.report import Claim, Given

_DIGITS = 2
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
Column = Callable[[Claim], str]


def as_text(
    found: Sequence[Claim], now: datetime, *, wide: bool, head: bool, namespaces: bool
) -> list[Text]:
    """A row for each claim; `head` is the line of names above them."""
    columns = _columns(now, wide=wide, namespaces=namespaces)
    rows = [[column(claim) or "-" for column in columns.values()] for claim in found]
    table = [list(columns), *rows] if head else rows
    widths = [max(len(row[at]) for row in table) for at in range(len(columns))] if table else []
    return [
        Text("   ".join(f"{text:<{size}}" for text, size in zip(row, widths, strict=True)).rstrip())
        for row in table
    ]


def as_csv(found: Sequence[Claim], now: datetime, *, head: bool) -> str:
    """All columns of all rows, separated by commas; unknown is empty."""
    columns = _columns(now, wide=True, namespaces=True)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([list(columns)] if head else [])
    writer.writerows([column(claim) for column in columns.values()] for claim in found)
    return text.getvalue()


def _columns(now: datetime, *, wide: bool, namespaces: bool) -> Mapping[str, Column]:
    found: dict[str, Column] = {"NAMESPACE": lambda one: one.namespace} if namespaces else {}
    found |= {
        "NAME": lambda one: one.name,
        "CLASS": lambda one: ",".join(one.classes),
        "STATE": lambda one: one.state,
        "NODE": lambda one: one.node,
        "DEVICES": lambda one: devices(one.devices),
        "SCORE": lambda one: "" if one.score is None else f"{one.score:.{_DIGITS}f}",
        "POLICY": lambda one: one.policy,
        "POD": lambda one: one.pod,
        "AGE": lambda one: age(one.created, now),
    }
    if wide:
        found |= {
            "LINK": lambda one: one.link,
            "SHARE": lambda one: ",".join(map(_share, one.devices)),
            "UUID": lambda one: ",".join(device.uuid or "?" for device in one.devices),
        }
    return found


def devices(found: Sequence[Given]) -> str:
    """Cards by index, ranges as 0-3; an instance as 0:1g.10gb; what has no index by its name."""
    whole = sorted({one.index for one in found if one.index >= 0 and not one.profile})
    named = [
        f"{one.index}:{one.profile}" if one.profile and one.index >= 0 else one.device
        for one in found
        if one.profile or one.index < 0
    ]
    return ",".join([*_ranges(whole), *named])


def _ranges(numbers: Sequence[int]) -> list[str]:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]


def _share(one: Given) -> str:
    if one.admin_access:
        return "admin"
    if not one.share_id:
        return "whole"
    return f"{one.memory_mib}Mi" + (f"/{one.cores}%" if one.cores else "")


def age(created: str, now: datetime) -> str:
    """How long ago, as kubectl has it; empty where unknown.

    Source of the steps: `HumanDuration` of `k8s.io/apimachinery/pkg/util/duration`.
    """
    try:
        at = datetime.fromisoformat(created)
    except ValueError:
        return ""
    passed = max(0, int((now - at.astimezone(UTC)).total_seconds()))
    if passed < 2 * _MINUTE:
        return f"{passed}s"
    for unit, smaller, fine, coarse in _STEPS:
        if passed < fine * unit.seconds:
            return _parts(passed, unit, smaller)
        if passed < coarse * unit.seconds:
            return f"{passed // unit.seconds}{unit.letter}"
    return f"{passed // _DAY}d"


def _parts(passed: int, unit: "_Unit", smaller: "_Unit") -> str:
    """Two units, such as 5m30s; a second one of 0 is left out."""
    rest = passed % unit.seconds // smaller.seconds
    return f"{passed // unit.seconds}{unit.letter}" + (f"{rest}{smaller.letter}" if rest else "")


class _Unit(NamedTuple):
    seconds: int
    letter: str


_S, _M, _H, _D = _Unit(1, "s"), _Unit(_MINUTE, "m"), _Unit(_HOUR, "h"), _Unit(_DAY, "d")
# A unit, the one below it, up to how many both are told, and up to how many the unit alone.
_STEPS = ((_M, _S, 10, 180), (_H, _M, 8, 48), (_D, _H, 8, 730))
