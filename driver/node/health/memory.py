"""What was wrong with the cards, kept over a restart of the plugin in a file.

The driver reports an XID once. A restart of the machine resets the cards, and so the file counts
for one boot only.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import structlog

from driver.node.files import replace_file
from driver.node.health.card import CardHealth, Problem

# How exact it must be when a problem was seen last, in seconds.
_EXACT_S = 60.0

_Gist = dict[int, list[tuple[str, float, int]]]

log = structlog.get_logger(__name__)


class _Notes(msgspec.Struct, frozen=True, kw_only=True):
    boot: str
    # By index of the card.
    cards: dict[int, tuple[Problem, ...]] = {}


class Memory:
    """The file of one plugin; two instances of a rolling update write the same into it."""

    def __init__(self, path: Path, *, boot: str) -> None:
        self._path = path
        self._boot = boot
        self._written: _Gist = {}

    def read(self) -> dict[int, CardHealth]:
        """The cards with problems in this boot, by index; an unreadable file is none."""
        try:
            notes = msgspec.json.decode(self._path.read_bytes(), type=_Notes)
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            log.warning("health before the restart is lost", file=str(self._path), error=str(error))
            return {}
        self._written = _gist(notes.cards)
        if notes.boot != self._boot:
            return {}
        return {index: CardHealth(problems=problems) for index, problems in notes.cards.items()}

    def write(self, cards: Mapping[int, CardHealth]) -> None:
        """Remember the problems; a disk that does not take them is complained about only."""
        ill = {index: card.problems for index, card in sorted(cards.items()) if card.problems}
        gist = _gist(ill)
        if gist == self._written:
            return
        try:
            replace_file(self._path, msgspec.json.encode(_Notes(boot=self._boot, cards=ill)))
            self._written = gist
        except OSError as error:
            log.warning("health is not kept for a restart", file=str(self._path), error=str(error))


def _gist(cards: Mapping[int, tuple[Problem, ...]]) -> _Gist:
    # A problem that is seen at every look is not a reason for a write at every look.
    return {
        index: [(problem.reason, problem.since, int(problem.last / _EXACT_S)) for problem in found]
        for index, found in cards.items()
    }
