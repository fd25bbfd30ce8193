"""The checkpoint file: changes are durable when the caller is told, and shared by two instances.

The plugin that a rolling update starts runs beside the one that it replaces; both work on one
file, under a lock, and each takes in what the other has appended before it decides anything.
Changes of callers that wait at the same time are written and synced together.
"""

import asyncio
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import structlog

from driver.node.errors import NodeError, StorageError
from driver.node.faults import FaultPoint, Reach, pass_by
from driver.node.files import replace_file, sync_folder
from driver.node.held import PreparedClaim
from driver.node.state.checkpoint import Book, DamagedLine, Record, encode
from driver.node.state.claimlocks import ClaimLocks
from driver.node.state.dropped import Dropped

# Decides on the book as it is now; what it returns is appended, what it raises goes to its caller.
Change = Callable[[Book], Record | None]

_LOCK_PATIENCE_S = 20.0
_LOCK_RETRY_S = 0.005
# Compact when this many lines more than needed have come together.
_SLACK = 256

log = structlog.get_logger(__name__)


class ClaimStore:
    """The claims of this node, on disk. Opening it reads the file, and repairs it if need be."""

    def __init__(self, path: Path, *, reach: Reach = pass_by) -> None:
        self._path = path
        self._reach = reach
        self._book = Book()
        self._inode = self._size = -1
        # Whether a write has failed: what is on disk now is not known.
        self._doubtful = False
        # What the other instance has let go of.
        self.dropped = Dropped()
        # Held around everything that is done about a claim.
        self.turns = ClaimLocks(path.with_name(f"{path.name}.turns"))
        self._waiting: list[tuple[Change, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        # There while claims may be held that the file does not know.
        self._lost = path.with_name(f"{path.name}.lost")
        # Whether no plugin has ever worked in this folder.
        self.is_new = not path.with_name(f"{path.name}.lock").exists()
        try:
            self._lock = _open_lock(f"{path}.lock")
            self._users = _open_lock(f"{path}.users")
            # Whether no other instance runs; one that starts later does not change it.
            self.alone = _try_lock(self._users, fcntl.LOCK_EX)
            fcntl.flock(self._users, fcntl.LOCK_SH)
            self.locked(lambda _book: None)
        except OSError as error:
            raise StorageError(f"checkpoint {path} cannot be opened: {error}") from error

    def is_lost(self) -> bool:
        """Whether the file was missing or damaged, and nobody has said since that it is whole."""
        return self._lost.exists()

    def lose(self) -> None:
        """Say that claims may be held that the file does not know; raises `OSError`."""
        self._lost.touch(0o600)
        sync_folder(self._lost.parent)

    def settle(self) -> None:
        """Say that what can be known of lost claims is in the file again; raises `StorageError`."""
        try:
            self._lost.unlink(missing_ok=True)
            sync_folder(self._lost.parent)
        except OSError as error:
            raise StorageError(f"{self._lost} cannot be removed: {error}") from error

    async def apply(self, change: Change) -> None:
        """Decide and write; returns when it is on disk, raises what `change` raises.

        Raises `StorageError` when the file cannot be written; nothing has changed then.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._waiting.append((change, done))
        if self._writer is None:
            self._writer = loop.create_task(self._write())
        await asyncio.shield(done)

    async def claims(self) -> tuple[PreparedClaim, ...]:
        """The claims that are held now, those of another instance included.

        Raises `StorageError` when the file cannot be read.
        """
        found: list[PreparedClaim] = []
        await self.apply(lambda book: found.extend(book.claims()))
        return tuple(found)

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            batch, self._waiting = self._waiting, []
            changes = [change for change, _ in batch]
            try:
                outcomes = await loop.run_in_executor(self._thread, self._outcomes, changes)
            except Exception as error:  # noqa: BLE001  (nobody may be left waiting)
                outcomes = [error] * len(batch)
            for (_, done), outcome in zip(batch, outcomes, strict=True):
                if outcome is None:
                    done.set_result(None)
                else:
                    done.set_exception(outcome)
        self._writer = None

    def locked(self, change: Change) -> None:
        """`apply` from a thread, or before there is an event loop."""
        outcome = self._outcomes([change])[0]
        if outcome is not None:
            raise outcome

    def close(self) -> None:
        """Let go of the file, after what was begun is done."""
        self._thread.shutdown()
        os.close(self._lock)
        os.close(self._users)

    def _outcomes(self, changes: list[Change]) -> list[Exception | None]:
        try:
            with self._exclusive():
                self._catch_up()
                return self._commit(changes)
        except OSError as error:
            self._doubtful = True
            failure = StorageError(
                f"checkpoint {self._path} cannot be written: {error}; see to the disk, the kubelet "
                "asks again"
            )
            return [failure] * len(changes)
        except NodeError as error:
            return [error] * len(changes)

    def _commit(self, changes: list[Change]) -> list[Exception | None]:
        lines: list[bytes] = []
        outcomes: list[Exception | None] = []
        for change in changes:
            try:
                record = change(self._book)
            except Exception as error:  # noqa: BLE001  (it is the caller's, and raised there)
                outcomes.append(error)
                continue
            outcomes.append(None)
            if record is not None:
                line = encode(record)
                self._book.apply(line.rstrip(b"\n"))
                lines.append(line)
        if lines:
            self._append(b"".join(lines))
        return outcomes

    def _append(self, data: bytes) -> None:
        self._reach(FaultPoint.BEFORE_APPEND)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            self._write_all(descriptor, data)
        except OSError:
            # A line that nobody was promised must not come true later.
            with suppress(OSError):
                os.ftruncate(descriptor, self._size)
            raise
        finally:
            os.close(descriptor)
        self._size += len(data)
        self._reach(FaultPoint.AFTER_SYNC)
        if self._book.line_count > 2 * len(self._book) + _SLACK:
            self._compact()

    def _write_all(self, descriptor: int, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        self._reach(FaultPoint.BEFORE_SYNC)
        os.fdatasync(descriptor)

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        give_up = time.monotonic() + _LOCK_PATIENCE_S
        while not _try_lock(self._lock, fcntl.LOCK_EX):
            if time.monotonic() > give_up:
                raise StorageError(
                    f"another process has held {self._path}.lock for {_LOCK_PATIENCE_S:.0f} s; "
                    "is a second instance of the plugin stopped or stuck?"
                )
            time.sleep(_LOCK_RETRY_S)
        try:
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def _catch_up(self) -> None:
        """Take in what another instance has written since, or all of a file that is new to us."""
        if not self._path.exists() and self._inode != -1 and not self._doubtful:
            log.error("checkpoint was removed under a running plugin", file=str(self._path))
            self._compact()
        if not self._path.exists():
            # Noted first: after a crash in between the new file would look whole.
            self.lose()
            self._path.touch(0o600)
            sync_folder(self._path.parent)
        status = self._path.stat()
        replaced = status.st_ino != self._inode or status.st_size < self._size
        if replaced:
            self.dropped.forget()
        if replaced or self._doubtful:
            self._book, self._inode, self._size = Book(), status.st_ino, 0
            self._doubtful = False
        if status.st_size > self._size:
            self._take_in(self._read(status.st_size))

    def _read(self, end: int) -> bytes:
        with self._path.open("rb") as file:
            file.seek(self._size)
            data = file.read(end - self._size)
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            # Nobody writes while we hold the lock: its writer died, and had told nobody.
            log.warning("cut off a torn write", file=str(self._path), bytes=len(data))
            os.truncate(self._path, self._size + len(whole))
        return whole

    def _take_in(self, data: bytes) -> None:
        damaged: list[DamagedLine] = []
        for line in data.split(b"\n")[:-1]:
            record = self._book.apply(line)
            if isinstance(record, DamagedLine):
                damaged.append(record)
            elif record.claim is None:
                self.dropped.note(record.uid)
        self._size += len(data)
        if damaged:
            self.dropped.forget()
            self._set_aside(damaged)

    def _set_aside(self, damaged: list[DamagedLine]) -> None:
        """Keep the damaged file for whoever wants to know, and go on with what can be read."""
        taken = {path.name for path in self._path.parent.iterdir()}
        number = next(n for n in range(len(taken) + 1) if f"{self._path.name}.bad-{n}" not in taken)
        aside = self._path.with_name(f"{self._path.name}.bad-{number}")
        replace_file(aside, self._path.read_bytes())
        log.error(
            "checkpoint damaged; kept a copy, the rest is in use",
            copy=str(aside),
            lines=len(damaged),
            reason=damaged[0].reason,
        )
        self.lose()
        self._compact()

    def _compact(self) -> None:
        lines = self._book.compacted()
        data = b"".join(line + b"\n" for line in lines)
        replace_file(self._path, data, before_rename=lambda: self._reach(FaultPoint.COMPACTED))
        self._inode, self._size = self._path.stat().st_ino, len(data)
        self._book.line_count = len(lines)


def _open_lock(path: str) -> int:
    # Nothing is ever written to it, and no open file must keep a disk from becoming read-only.
    return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
