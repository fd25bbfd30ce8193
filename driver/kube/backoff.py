"""How long to wait before the next try, and by which clock.

Knows no request and no error; randomness and the clock are given, so that tests need not wait.
"""

import asyncio
import random
import time
from collections.abc import Callable
from typing import Protocol

Random = Callable[[], float]
"""A number in [0, 1)."""


class Clock(Protocol):
    """Where time comes from: seconds that never run backwards, and a way to wait."""

    def now(self) -> float:
        """Monotonic seconds."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let other tasks run for so long."""
        ...


class SystemClock:
    """The machine's monotonic clock."""

    def now(self) -> float:
        """Monotonic seconds."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait for so long."""
        await asyncio.sleep(seconds)


class Backoff:
    """Delays that double from `base` up to `cap`, each somewhere in its upper half.

    The jitter keeps many clients from coming back in step after one outage.
    """

    def __init__(
        self, *, base: float = 0.2, cap: float = 30.0, jitter: Random = random.random
    ) -> None:
        self._base = base
        self._cap = cap
        self._jitter = jitter
        self._failures = 0

    def next(self) -> float:
        """Seconds to wait after one more failure."""
        # 2**60 is beyond any cap; the bound keeps the power from growing without end.
        delay = min(self._cap, self._base * 2.0 ** min(self._failures, 60))
        self._failures += 1
        return delay * (0.5 + self._jitter() / 2)

    def reset(self) -> None:
        """Start over: the last try went well."""
        self._failures = 0
