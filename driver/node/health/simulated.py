"""The health of simulated cards: well, but for what a file says, so that anybody can try it.

One line for one card, by index:

    gpu-0 lost
    gpu-1 ecc 3
    gpu-2 xid 79
    gpu-3 remap

A line that goes away is a card that was reset; an XID is reported when its line comes up. The file
is looked at four times a second. Another line is complained about and does nothing.
"""

import re
import time
from collections.abc import Collection
from pathlib import Path

import msgspec
import structlog

from driver.node.card import Card
from driver.node.device import device_name
from driver.node.health.port import NO_RECOVERY, Reading, Xid
from driver.node.health.xids import FATAL

_LINE = re.compile(
    r"(?P<name>\S+) +(?P<what>lost|remap|ecc|xid)(?: +(?P<number>\d{1,9}))?", re.ASCII
)
_COUNTED = ("ecc", "xid")
_LOOK_S = 0.25

log = structlog.get_logger(__name__)


class Fault(msgspec.Struct, frozen=True):
    """One line of the file; `number` counts for ecc and xid."""

    name: str
    what: str
    number: int = 0


class SimulatedHealth:
    """The health port over a file that need not be there."""

    def __init__(self, cards: tuple[Card, ...], path: Path) -> None:
        self._names = {device_name(card): card.index for card in cards}
        self._path = path
        self._text = ""
        self._faults: frozenset[Fault] = frozenset()

    def wait(self, seconds: float) -> tuple[Xid, ...] | None:
        """The XIDs whose lines have come up."""
        end = time.monotonic() + seconds
        while True:
            before = self._faults
            self._look()
            if self._faults != before:
                return self._xids(self._faults - before)
            if time.monotonic() >= end:
                return None
            time.sleep(_LOOK_S)

    def read(self) -> tuple[Reading, ...]:
        """What the file said when it was last looked at."""
        return tuple(
            _reading(index, [fault for fault in self._faults if fault.name == name])
            for name, index in self._names.items()
        )

    def close(self) -> None:
        """Nothing is open."""

    def _xids(self, new: frozenset[Fault]) -> tuple[Xid, ...]:
        found = sorted((fault.name, fault.number) for fault in new if fault.what == "xid")
        return tuple(Xid(index=self._names[name], number=number) for name, number in found)

    def _look(self) -> None:
        try:
            text = self._path.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            text = ""
        if text != self._text:
            self._text = text
            self._faults = faults(text, self._names)


def faults(text: str, names: Collection[str]) -> frozenset[Fault]:
    """What a file says of the cards that there are."""
    found: set[Fault] = set()
    for line in filter(None, map(str.strip, text.splitlines())):
        match = _LINE.fullmatch(line)
        is_complete = match is not None and (match["what"] in _COUNTED) == bool(match["number"])
        if match is None or not is_complete or match["name"] not in names:
            log.warning(
                "simulated fault not understood; expected such as 'gpu-0 lost' or 'gpu-0 xid 79'",
                line=line,
                cards=sorted(names),
            )
            continue
        found.add(Fault(match["name"], match["what"], int(match["number"] or 0)))
    return frozenset(found)


def _reading(index: int, found: list[Fault]) -> Reading:
    kinds = {fault.what for fault in found}
    if "lost" in kinds:
        return Reading(index=index, lost="simulated")
    # A card with memory errors is one of those that do not tell what they need.
    recovery = None if "ecc" in kinds else NO_RECOVERY
    if any(fault.what == "xid" and fault.number in FATAL for fault in found):
        recovery = "gpu-reset"
    return Reading(
        index=index,
        uncorrected=sum(fault.number for fault in found if fault.what == "ecc"),
        remap_failed="remap" in kinds,
        recovery=recovery,
    )
