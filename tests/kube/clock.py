"""Time for tests: it passes at once, and only when somebody sleeps or turns it."""

import asyncio


class FakeClock:
    """A clock that remembers how long it was asked to wait."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.slept: list[float] = []

    def now(self) -> float:
        """Seconds since nothing in particular."""
        return self.time

    async def sleep(self, seconds: float) -> None:
        """Advance, and let other tasks run."""
        self.slept.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)
