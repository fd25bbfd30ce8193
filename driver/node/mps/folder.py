"""The folder in which the plugin says which MPS daemons it wants, and the keeper what there is.

Both are processes of their own, since daemons must outlive the plugin. The folder is below /run: a
reboot ends all daemons, and takes what was said of them with it.

- `wanted/NAME.json`: a daemon that is wanted. The plugin writes it whole; without it no daemon.
- `NAME/`: the daemon's `pipe` and `log`, and `state.json`, which the keeper writes.
- `shm`: what all daemons and their clients have as /dev/shm.
- `keeper.lock`: locked by the keeper as long as it lives.
"""

import fcntl
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import structlog

from driver.node.files import replace_file

log = structlog.get_logger(__name__)

_FOLDER_MODE = 0o755
# Clients run as whoever their containers run as.
_OPEN_MODE = 0o1777


class WantedDaemon(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A daemon as the claims that use it want it."""

    # UUIDs of its cards, in the order of their index.
    cards: tuple[str, ...]
    # What no client may go beyond: per cent of the threads, bytes of each card; None: no limit.
    threads: int | None = None
    memory_limits: tuple[int | None, ...] = ()

    def version(self) -> str:
        """Changes whenever the daemon has to be told something else."""
        return f"{zlib.crc32(msgspec.json.encode(self)):08x}"


class DaemonState(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What became of a wanted daemon."""

    # UUIDs of its cards: what has to be set back when it ends.
    cards: tuple[str, ...] = ()
    # The version of what it was told last, once it answers; empty before that.
    ready: str = ""
    # Why it does not work, in a sentence; it is tried again all the same.
    error: str = ""
    restarts: int = 0


class MpsFolder:
    """Reads and writes these files; blocking."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._wanted = path / "wanted"

    def create(self) -> None:
        """Have the folders there; raises `OSError`."""
        self._wanted.mkdir(parents=True, exist_ok=True, mode=_FOLDER_MODE)
        _open_folder(self.path / "shm")

    def create_daemon(self, name: str) -> None:
        """Have a daemon's own folders there; raises `OSError`."""
        (self.path / name / "log").mkdir(parents=True, exist_ok=True, mode=_FOLDER_MODE)
        _open_folder(self.path / name / "pipe")

    def want(self, name: str, daemon: WantedDaemon) -> None:
        """Say that a daemon is wanted; nothing is written when that is said already."""
        if self.wanted(name) != daemon:
            replace_file(self._wanted / f"{name}.json", msgspec.json.encode(daemon))

    def unwant(self, name: str) -> None:
        """Say that a daemon is not wanted (any more)."""
        (self._wanted / f"{name}.json").unlink(missing_ok=True)

    def wanted(self, name: str) -> WantedDaemon | None:
        """What is wanted under a name; None when nothing is, or it cannot be read."""
        try:
            return msgspec.json.decode(
                (self._wanted / f"{name}.json").read_bytes(), type=WantedDaemon
            )
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as error:
            log.warning("wanted MPS daemon cannot be read", daemon=name, error=str(error))
            return None

    def names(self) -> Iterator[str]:
        """The names of all daemons that are wanted."""
        yield from (path.stem for path in sorted(self._wanted.glob("*.json")))

    def known(self) -> Iterator[str]:
        """The names of all daemons that there is a state of."""
        yield from (path.parent.name for path in sorted(self.path.glob("*/state.json")))

    def state(self, name: str) -> DaemonState | None:
        """What the keeper says of a daemon; None when there is none."""
        try:
            return msgspec.json.decode(
                (self.path / name / "state.json").read_bytes(), type=DaemonState
            )
        except (FileNotFoundError, msgspec.MsgspecError):
            return None

    def keep_state(self, name: str, state: DaemonState | None) -> None:
        """Say what there is of a daemon; None: nothing."""
        path = self.path / name / "state.json"
        if state is None:
            path.unlink(missing_ok=True)
        else:
            replace_file(path, msgspec.json.encode(state))

    def lock(self) -> int | None:
        """Be the keeper until the descriptor is closed; None when somebody else is.

        Ask again when you are the only one: who looks for a keeper holds the lock for a moment.
        """
        return self._lock(fcntl.LOCK_EX)

    def is_kept(self) -> bool:
        """Whether a keeper lives."""
        descriptor = self._lock(fcntl.LOCK_SH)
        if descriptor is not None:
            os.close(descriptor)
        return descriptor is None

    def _lock(self, kind: int) -> int | None:
        path = self.path / "keeper.lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor


def _open_folder(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(_OPEN_MODE)
