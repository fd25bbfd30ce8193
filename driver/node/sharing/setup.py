"""How the cards of a claim are set up before its first container, and set back after its last.

What a card is set to follows from the claims that hold it, so both steps can be repeated. A claim
is in the checkpoint before its cards are set up, and leaves it while they are still locked after
they were set back: of two that leave at the same time the second one sees that it is the last.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import structlog

from driver.model.gpuconfig import Interval
from driver.node.errors import HardwareError
from driver.node.faults import Reach, pass_by
from driver.node.held import PreparedClaim, takes
from driver.node.sharing import limiter
from driver.node.sharing.daemons import Daemons
from driver.node.sharing.locks import CardLocks
from driver.node.sharing.parts import Parts, made_parts
from driver.node.sharing.port import CardControl
from driver.node.sharing.rules import daemon_cards, slices_time
from driver.node.sharing.witness import Witness
from driver.node.state.checkpoint import Book, Record, put
from driver.node.state.store import ClaimStore

log = structlog.get_logger(__name__)


class CardSetup:
    """Sets up and sets back; `folder` is the plugin's own, `boot` that of the machine."""

    def __init__(
        self,
        store: ClaimStore,
        control: CardControl,
        *,
        folder: Path,
        boot: str,
        daemons: Daemons,
        reach: Reach = pass_by,
    ) -> None:
        self._store = store
        self._control = control
        self._boot = boot
        self._daemons = daemons
        self._locks = CardLocks(folder / "cards")
        self._witness = Witness(folder, boot=boot)
        self._parts = Parts(control, self._witness, reach=reach)
        self._limits = folder / "hami"

    def recover(self) -> tuple[list[PreparedClaim], frozenset[str]]:
        """Take away what no claim has any more; blocking, before anything is prepared.

        Beside another instance nothing is taken away, as it may just be making it, nor while the
        checkpoint does not know all claims: the next start does it. Returns the claims of this
        boot, and the UUIDs of the parts that were made here, those that are gone now included. What
        cannot be taken away is logged; it is no reason not to serve the node.
        """
        held: list[PreparedClaim] = []
        self._store.locked(lambda book: _collect(book, self._boot, held))
        ours = {*self._witness.parts(), *(d.uuid for claim in held for d in claim.devices)}
        if self._store.alone and not self._store.is_lost():
            self._daemons.sweep(held)
            self._parts.clear(held)
            limiter.sweep(self._limits, [claim.uid for claim in held])
        return held, frozenset(ours)

    async def set_up(self, claim: PreparedClaim) -> PreparedClaim:
        """Have the cards as the claim needs them; the claim, with what was made for it.

        Raises `HardwareError` or `StorageError` when that cannot be; a repetition goes on.
        """
        for card in _cards(claim):
            async with self._locks.held(card):
                claim = await self._set_up(claim, card)
        if daemon := daemon_cards(claim):
            async with self._locks.held(daemon[0]):
                await self._daemons.start(claim, await self._others(claim.uid))
        if claim.limiter is not None:
            await asyncio.to_thread(limiter.create, claim.limiter)
        return claim

    @asynccontextmanager
    async def set_back(self, claim: PreparedClaim) -> AsyncIterator[None]:
        """Have the cards as the other claims need them, and locked while this one is taken out.

        The caller takes it out of the checkpoint inside. Raises `HardwareError` or `StorageError`
        before that; a repetition goes on.
        """
        if claim.limiter is not None:
            await asyncio.to_thread(limiter.remove, claim.limiter)
        if claim.boot != self._boot:
            yield  # The reboot has set everything back.
            return
        daemon = daemon_cards(claim)
        async with AsyncExitStack() as locks:
            # Whoever sets up holds one card at a time, so in this order nobody waits in a circle.
            for card in sorted({*_cards(claim), *daemon[:1]}):
                await locks.enter_async_context(self._locks.held(card))
            if daemon:
                await self._daemons.stop(claim, await self._others(claim.uid))
            for card in _cards(claim):
                await self._set_back(claim, card)
            yield

    async def _set_up(self, claim: PreparedClaim, card: str) -> PreparedClaim:
        whole = any(d.can_be_cut and d.card() == card for d in takes(claim))
        if whole or made_parts(claim, card):
            others = [*await self._others(claim.uid), claim]
            await asyncio.to_thread(self._parts.clear, others, card)
        if whole:
            await self._parts.join(card)
        elif made_parts(claim, card):
            claim = await self._parts.make(claim, card, self._note)
        interval = slices_time(claim, card)
        if interval is not None:
            await asyncio.to_thread(self._control.set_time_slice, card, interval)
        return claim

    async def _set_back(self, claim: PreparedClaim, card: str) -> None:
        await self._parts.remove(claim, card)
        if slices_time(claim, card) is not None:
            others = [slices_time(other, card) for other in await self._others(claim.uid)]
            left = next(filter(None, others), Interval.DEFAULT)
            await asyncio.to_thread(self._leave, card, left)

    def _leave(self, card: str, interval: Interval) -> None:
        try:
            self._control.set_time_slice(card, interval)
        except HardwareError as error:
            # A card that has failed must not keep the pod from ending; the next claim sets it.
            log.warning("time slice not set back", error=str(error))

    async def _note(self, claim: PreparedClaim) -> None:
        await self._store.apply(lambda _book: put(claim))

    async def _others(self, uid: str) -> Sequence[PreparedClaim]:
        found: list[PreparedClaim] = []
        await self._store.apply(lambda book: _collect(book, self._boot, found))
        return [claim for claim in found if claim.uid != uid]


def _collect(book: Book, boot: str, into: list[PreparedClaim]) -> Record | None:
    into += [claim for claim in book.claims() if claim.boot == boot]
    return None


def _cards(claim: PreparedClaim) -> list[str]:
    """The cards that something has to be done about, each once, in an order that all keep to."""
    return sorted(
        {
            d.card()
            for d in takes(claim)
            if d.sharing is not None or d.can_be_cut or (d.partition and d.partition.made)
        }
    )
