"""Who may change a thing now? Must not know what is changed."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from .layout import cache
from .progress import say


@contextmanager
def held(name: str) -> Iterator[None]:
    """Hold the lock of that name, or wait for it; the kernel frees it when the holder dies."""
    folder = cache() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"  waiting for another hack/cluster that works on {name}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
