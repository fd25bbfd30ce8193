"""The MPS daemons that claims need: wanted from the keeper, waited for, and given up.

Runs no daemon itself (`driver.node.mps` does). The caller holds the cards' locks.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import structlog

from driver.node.errors import HardwareError, StorageError
from driver.node.held import HeldDevice, PreparedClaim, takes
from driver.node.mps.folder import MpsFolder, WantedDaemon
from driver.node.sharing.rules import daemon_cards, daemon_name

# How long a daemon may take to answer, or to end: within the time that the kubelet gives a call.
PATIENCE_S = 25.0
_LOOK_EVERY_S = 0.05

log = structlog.get_logger(__name__)


class Daemons:
    """The daemons of this node, by the claims that use them."""

    def __init__(self, folder: Path | None, *, patience: float = PATIENCE_S) -> None:
        self._folder = MpsFolder(folder) if folder else None
        self._patience = patience
        if self._folder is not None:
            self._folder.create()

    async def start(self, claim: PreparedClaim, others: Iterable[PreparedClaim]) -> None:
        """Have the claim's daemon answer, within limits that are enough for all that use it.

        Raises `HardwareError` when there is no keeper, or no daemon in time.
        """
        if self._folder is None or not (cards := daemon_cards(claim)):
            return
        name, wanted = daemon_name(cards), _wanted(cards, (claim, *others))
        await asyncio.to_thread(self._want, name, wanted)
        await self._answers(self._folder, name, wanted)

    async def stop(self, claim: PreparedClaim, others: Sequence[PreparedClaim]) -> None:
        """Have the claim's daemon ended, or go on for those that still use it.

        Raises `HardwareError` when it does not end in time. Where no keeper is left nothing can
        end it, and nothing is waited for.
        """
        if self._folder is None or not (cards := daemon_cards(claim)):
            return
        name = daemon_name(cards)
        if any(daemon_cards(other) == cards for other in others):
            await asyncio.to_thread(self._want, name, _wanted(cards, others))
            return
        await asyncio.to_thread(self._folder.unwant, name)
        await self._ends(self._folder, name)

    def sweep(self, claims: Iterable[PreparedClaim]) -> None:
        """Give up the daemons that none of these claims uses."""
        if self._folder is None:
            return
        used = {daemon_name(cards) for claim in claims if (cards := daemon_cards(claim))}
        for name in set(self._folder.names()) - used:
            self._folder.unwant(name)
            log.info("gave up an MPS daemon that no claim uses", daemon=name)

    def _want(self, name: str, wanted: WantedDaemon) -> None:
        try:
            if self._folder is not None:
                self._folder.create_daemon(name)
                self._folder.want(name, wanted)
        except OSError as error:
            raise StorageError(f"folder of MPS daemon {name} cannot be written: {error}") from error

    async def _answers(self, folder: MpsFolder, name: str, wanted: WantedDaemon) -> None:
        give_up = time.monotonic() + self._patience
        while True:
            state = await asyncio.to_thread(folder.state, name)
            if state is not None and state.ready == wanted.version() and folder.is_kept():
                return
            if not folder.is_kept():
                raise HardwareError(
                    "no keeper of MPS daemons runs on this node: see to the DaemonSet quadrant-mps"
                )
            if time.monotonic() > give_up:
                why = state.error if state is not None and state.error else "it does not answer"
                raise HardwareError(f"MPS daemon {name} for {', '.join(wanted.cards)}: {why}")
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _ends(self, folder: MpsFolder, name: str) -> None:
        give_up = time.monotonic() + self._patience
        while await asyncio.to_thread(folder.state, name) is not None:
            if not folder.is_kept():
                log.warning("no keeper of MPS daemons runs; left to the next one", daemon=name)
                return
            if time.monotonic() > give_up:
                raise HardwareError(f"MPS daemon {name} has not ended; the keeper's log says why")
            await asyncio.sleep(_LOOK_EVERY_S)


def _wanted(cards: tuple[str, ...], claims: Iterable[PreparedClaim]) -> WantedDaemon:
    users = [d for claim in claims for d in takes(claim) if d.by_mps() and d.uuid in cards]
    return WantedDaemon(
        cards=cards,
        threads=_most([d.sharing.threads for d in users if d.sharing is not None]),
        memory_limits=tuple(_memory([d for d in users if d.uuid == card]) for card in cards),
    )


def _memory(users: Iterable[HeldDevice]) -> int | None:
    return _most([d.sharing.memory_limit for d in users if d.sharing is not None])


def _most(limits: Sequence[int | None]) -> int | None:
    """The largest limit of a client; None when any of them has none."""
    known = [limit for limit in limits if limit is not None]
    return max(known) if known and len(known) == len(limits) else None
