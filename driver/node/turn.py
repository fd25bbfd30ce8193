"""Which of two instances of the plugin may publish: the one that was started last.

During a rolling update the old and the new one run side by side. Both serve the kubelet, but if
both kept the slices as they see fit, two versions with different ideas would undo each other's
writes for ever. Kernel locks end with their process, so a crash never leaves the turn taken.
"""

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

from driver.node.files import replace_file

# How long the one that gave up its turn leaves it to the other, before it looks whether that one
# still lives.
_COURTESY_S = 5.0


class Turn:
    """The turn to publish; blocking, but only on small local files."""

    def __init__(
        self, folder: Path, instance: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._claim = folder / "publisher"
        self._instance = instance
        self._clock = clock
        self._lock = os.open(
            folder / "publisher.lock", os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        self._mine = False
        self._not_before = 0.0
        replace_file(self._claim, instance.encode())

    def mine(self) -> bool:
        """Whether this instance may publish now; ask before each publishing, and now and then.

        True for the one that was started last as soon as the other has noticed, and for the older
        one again when the newer has ended.
        """
        wanted_by_other = self._claim.read_bytes() != self._instance.encode()
        if self._mine and wanted_by_other:
            fcntl.flock(self._lock, fcntl.LOCK_UN)
            self._mine = False
            self._not_before = self._clock() + _COURTESY_S
        elif not self._mine and self._clock() >= self._not_before:
            self._mine = self._take()
        return self._mine

    def close(self) -> None:
        """Leave the turn to whoever is there."""
        os.close(self._lock)

    def _take(self) -> bool:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        replace_file(self._claim, self._instance.encode())
        return True
