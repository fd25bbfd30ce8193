"""One call about a claim at a time, also where two instances of the plugin run side by side.

One file for all claims, in which each locks a byte of its own, so that nothing is left to sweep.
The kernel lets go of a lock when its process ends.
"""

import asyncio
import errno
import fcntl
import os
import struct
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import blake2b
from pathlib import Path

from driver.node.errors import StorageError

# Less than the kubelet gives a call, so that it is told what it waits for.
_PATIENCE_S = 20.0
_RETRY_S = 0.02


class ClaimLocks:
    """A lock for each claim, by UID, between processes and between objects of this class.

    Within one process the caller sees to it: whoever waits here asks again and again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @asynccontextmanager
    async def held(self, uid: str) -> AsyncIterator[None]:
        """No other instance works on the claim meanwhile.

        Raises `StorageError` after 20 s of waiting, or when the file cannot be opened. On a disk
        that is read-only nothing is locked: nothing can be entered or dropped there, and what is
        prepared must go on being told.
        """
        descriptor = self._open()
        if descriptor is None:
            yield
            return
        try:
            await self._take(descriptor, uid)
            yield
        finally:
            os.close(descriptor)

    def _open(self) -> int | None:
        try:
            # Not kept open: a disk with a file open for writing cannot be made read-only.
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            if error.errno == errno.EROFS:
                return None
            raise StorageError(
                f"{self._path} cannot be written: {error}; see to the disk, the kubelet asks again"
            ) from error

    async def _take(self, descriptor: int, uid: str) -> None:
        give_up = time.monotonic() + _PATIENCE_S
        while not _try_byte(descriptor, _place(uid)):
            if time.monotonic() > give_up:
                raise StorageError(
                    f"another instance of the plugin has worked on claim {uid} for "
                    f"{_PATIENCE_S:.0f} s; it goes on, and the kubelet asks again"
                )
            await asyncio.sleep(_RETRY_S)


def _place(uid: str) -> int:
    """A byte that no other claim has, as far as 62 bits can tell; a file has 63."""
    return int.from_bytes(blake2b(uid.encode(), digest_size=8).digest()) >> 2


def _try_byte(descriptor: int, place: int) -> bool:
    # struct flock of 64-bit Linux: type, whence, start, length, process (0 for these locks).
    wanted = struct.pack("hhqqi0q", fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0)
    try:
        # Belongs to the open file, not to the process: two in one process keep each other out.
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, wanted)
    except BlockingIOError:
        return False
    return True
