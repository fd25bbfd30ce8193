"""The health of every device as the kubelet is to know it: told at once, on change, and regularly.

Knows neither hardware nor gRPC.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping

import msgspec

from driver.node.board import card_name
from driver.node.health.card import CardHealth
from driver.node.health.verdict import Status, message, status

# The kubelet takes what it has not heard of for 30 s for unknown.
_REPEAT_S = 10.0


class DeviceHealth(msgspec.Struct, frozen=True, kw_only=True):
    """One published device."""

    device: str
    status: Status
    message: str
    # Seconds since the epoch; 0: never known.
    known_at: float


def of_devices(names: Iterable[str], cards: Mapping[str, CardHealth]) -> tuple[DeviceHealth, ...]:
    """The health of devices by that of cards, both by name; a part is as well as its card."""
    return tuple(_of(name, cards.get(card_name(name), CardHealth())) for name in names)


def _of(name: str, card: CardHealth) -> DeviceHealth:
    return DeviceHealth(
        device=name,
        status=status(card),
        message=message(card),
        known_at=card.known_at or 0.0,
    )


class Bulletin:
    """What is true now, for any number of readers."""

    def __init__(self, *, repeat_s: float = _REPEAT_S) -> None:
        self._repeat_s = repeat_s
        self._now: tuple[DeviceHealth, ...] | None = None
        self._changed = asyncio.Event()
        self._is_over = False

    def tell(self, devices: tuple[DeviceHealth, ...]) -> None:
        """Replace all that is true; readers hear at once if it is news to them."""
        is_news = self._now is None or _gist(devices) != _gist(self._now)
        self._now = devices
        if is_news:
            self._wake()

    def close(self) -> None:
        """No more is told; every reader comes to its end."""
        self._is_over = True
        self._wake()

    async def read(self) -> AsyncIterator[tuple[DeviceHealth, ...]]:
        """All devices: now, after every change, and when nothing has changed for some time.

        Before anything was told, it is waited for.
        """
        while not self._is_over:
            changed = self._changed
            if self._now is not None:
                yield self._now
            try:
                async with asyncio.timeout(self._repeat_s):
                    await changed.wait()
            except TimeoutError:
                pass

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _gist(devices: tuple[DeviceHealth, ...]) -> list[tuple[str, str, str]]:
    return [(device.device, device.status, device.message) for device in devices]
