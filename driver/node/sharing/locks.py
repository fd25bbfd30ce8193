"""One change of a card at a time, also where two instances of the plugin run side by side."""

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from driver.node.errors import HardwareError

_PATIENCE_S = 20.0
_RETRY_S = 0.02


class CardLocks:
    """A lock for each card, by UUID: within this process, and between processes by a file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._locks: dict[str, asyncio.Lock] = {}
        folder.mkdir(parents=True, exist_ok=True, mode=0o750)

    @asynccontextmanager
    async def held(self, card: str) -> AsyncIterator[None]:
        """Nobody else changes the card meanwhile. Raises `HardwareError` after 20 s of waiting."""
        async with self._locks.setdefault(card, asyncio.Lock()):
            descriptor = await asyncio.to_thread(_take, self._folder / f"{card}.lock")
            try:
                yield
            finally:
                os.close(descriptor)


def _take(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    give_up = time.monotonic() + _PATIENCE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > give_up:
                os.close(descriptor)
                raise HardwareError(
                    f"another instance of the plugin has held {path} for {_PATIENCE_S:.0f} s; "
                    "is it stuck in a call to the GPU driver?"
                ) from None
            time.sleep(_RETRY_S)
        else:
            return descriptor
