"""The health of all cards of this node, kept up to date: hardware is heard, others are told.

Knows who listens to hardware and what to remember; what follows from an event is
`driver.node.health.card`'s business, what others make of it theirs.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType

import structlog

from driver.node.card import Card
from driver.node.health.card import (
    CardHealth,
    Rules,
    after_reading,
    after_silence,
    after_xid,
)
from driver.node.health.listener import Failed, Heard, Listener, Pace
from driver.node.health.memory import Memory
from driver.node.health.port import HealthSource, Reading, Xid
from driver.node.health.verdict import message, status

log = structlog.get_logger(__name__)


class Monitor:
    """`run` it as a task. `on_news` is called after every word from hardware, changed or not."""

    def __init__(
        self,
        cards: Iterable[Card],
        connect: Callable[[], HealthSource] | None,
        memory: Memory,
        *,
        rules: Rules,
        pace: Pace | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Blocks on the disk: `memory` is read. Without `connect` nothing is ever known."""
        known = memory.read()
        self._cards = {card.index: known.get(card.index, CardHealth()) for card in cards}
        self._connect = connect
        self._memory = memory
        self._rules = rules
        self._pace = pace or Pace()
        self._clock = clock
        self._heard: asyncio.Queue[Heard] = asyncio.Queue()
        self.on_news: list[Callable[[], None]] = []

    @property
    def cards(self) -> Mapping[int, CardHealth]:
        """How every card is, by index; a live view."""
        return MappingProxyType(self._cards)

    @property
    def has_looked(self) -> bool:
        """Whether something is known of every card by now, or nothing ever will be."""
        looked = (card.known_at is not None or card.problems for card in self._cards.values())
        return self._connect is None or all(looked)

    async def run(self) -> None:
        """Listen until cancelled. What hardware fails at becomes the cards' health."""
        if self._connect is None:
            return
        loop = asyncio.get_running_loop()

        def tell(heard: Heard) -> None:
            # The loop may have ended before a thread that waits for a driver.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._heard.put_nowait, heard)

        listener = Listener(self._connect, tell, self._pace)
        self._tell()
        listener.start()
        try:
            while True:
                self._take_in(await self._next())
                await self._remember()
        finally:
            listener.stop()

    async def _remember(self) -> None:
        writing = asyncio.ensure_future(asyncio.to_thread(self._memory.write, dict(self._cards)))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            # What was begun on the disk is over before the plugin ends.
            await writing
            raise

    async def _next(self) -> Heard:
        try:
            async with asyncio.timeout(self._pace.deaf):
                return await self._heard.get()
        except TimeoutError:
            return Failed(f"the driver has not answered for {self._pace.deaf:.0f} s")

    def _take_in(self, heard: Heard) -> None:
        before = {index: (status(card), message(card)) for index, card in self._cards.items()}
        if isinstance(heard, Failed):
            for index, card in self._cards.items():
                self._cards[index] = after_silence(card, heard.why, self._clock())
        else:
            for item in heard:
                self._take(item)
        for index, card in self._cards.items():
            if before[index] != (status(card), message(card)):
                say = log.info if status(card) == "Healthy" else log.warning
                say("health of a card", gpu=index, status=status(card), message=message(card))
        self._tell()

    def _take(self, item: Xid | Reading) -> None:
        at = self._clock()
        if isinstance(item, Reading):
            if item.index in self._cards:
                card = self._cards[item.index]
                self._cards[item.index] = after_reading(card, item, at, self._rules)
            return
        named = self._cards if item.index is None else {item.index} & self._cards.keys()
        for index in list(named):
            self._cards[index] = after_xid(self._cards[index], item.number, at, self._rules)

    def _tell(self) -> None:
        for told in self.on_news:
            told()
