"""Which parts of cards were made here: a file for each, which bears witness when all else is lost.

The checkpoint says what claims have; this says what of the parts on the cards is ours to remove.
Blocking.
"""

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from driver.node.errors import StorageError
from driver.node.files import TEMPORARY, replace_file
from driver.node.mig import MigInstance

# Card, profile and start.
_PLACE = 3
_LEFT = " left"


class MadePart(NamedTuple):
    """A part that was made here: its card's UUID, and its place."""

    card: str
    profile: str
    start: int
    # Its claim has gone, and the card would not remove it: to be given to nobody.
    left: bool = False


class Witness:
    """The files below the plugin's folder. Raises `StorageError` when they cannot be written."""

    def __init__(self, folder: Path, *, boot: str) -> None:
        self._folder = folder / "mig"
        self._boot = boot
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o750)

    def note(self, card: str, part: MigInstance) -> None:
        """This part was made here."""
        self._write(part.uuid, MadePart(card, part.profile, part.start))

    def leave(self, uuid: str, part: MadePart) -> None:
        """The claim that had this part has gone without it."""
        self._write(uuid, part._replace(left=True))

    def _write(self, uuid: str, part: MadePart) -> None:
        path = self._folder / uuid
        place = f"{part.card} {part.profile} {part.start}"
        content = f"{self._boot} {place}{_LEFT if part.left else ''}".encode()
        try:
            if not path.exists() or path.read_bytes() != content:
                replace_file(path, content)
        except OSError as error:
            raise StorageError(f"{path} cannot be written: {error}") from error

    def forget(self, uuid: str) -> None:
        """It is no more; a file that stays is found to be wrong later."""
        with suppress(OSError):
            (self._folder / uuid).unlink(missing_ok=True)

    def parts(self) -> dict[str, MadePart]:
        """The parts that were made in this boot and not removed, by UUID.

        Parts do not survive a reboot; what has such a UUID afterwards is somebody else's.
        """
        found: dict[str, MadePart] = {}
        for path in sorted(self._folder.iterdir()):
            if path.name.endswith(TEMPORARY):
                continue
            try:
                boot, *place = path.read_text().split(" ")
            except FileNotFoundError:
                continue  # Another instance has just removed the part.
            if boot == self._boot and len(place) >= _PLACE:
                left = place[_PLACE:] == [_LEFT.strip()]
                found[path.name] = MadePart(place[0], place[1], int(place[2]), left)
            else:
                path.unlink(missing_ok=True)
        return found
