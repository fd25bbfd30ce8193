"""Keeps `status.devices` of the prepared claims true, behind prepare's back.

Prepare neither waits for it nor fails with it: what cannot be written is tried again, and where
the plugin lacks the right, it is said and left.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import NoReturn

import structlog

from driver.kube.backoff import Backoff
from driver.kube.errors import Conflict, Forbidden, Invalid, KubeError, NotFound
from driver.kube.rest import Rest
from driver.model.errors import QuadrantError
from driver.node.devicestatus import StatusOfClaim, patch
from driver.node.health.card import CardHealth
from driver.node.health.verdict import message, status
from driver.node.held import PreparedClaim
from driver.node.slices import API_VERSION
from driver.wire.decode import decode
from driver.wire.patch import MERGE_PATCH

# Claims come in crowds, and those that are being prepared go first.
_SETTLE_S = 0.2
_SETTLES = 25
_AT_ONCE = 2
_RETRY_FIRST_S = 0.5
_RETRY_LAST_S = 30.0

log = structlog.get_logger(__name__)


class StatusWriter:
    """`run` it as a task; only for the event loop's thread."""

    def __init__(
        self,
        rest: Rest,
        claims: Callable[[], Awaitable[tuple[PreparedClaim, ...]]],
        *,
        driver: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`claims` gives those that are prepared, or being prepared, on this node."""
        self._rest = rest
        self._claims = claims
        self._driver = driver
        self._clock = clock
        self._cards: Mapping[str, CardHealth] = {}
        # UIDs; None stands for all claims: nobody knows what the process before has written.
        self._due: set[str] | None = None
        self._awake = asyncio.Event()
        self._awake.set()
        self._is_forbidden = False

    def prepared(self, uid: str) -> None:
        """A claim has been prepared."""
        if self._due is not None:
            self._due.add(uid)
        self._awake.set()

    def health(self, cards: Mapping[str, CardHealth]) -> None:
        """How the cards are now, by the name of their device."""
        if _gist(cards) != _gist(self._cards):
            self._due = None
            self._awake.set()
        self._cards = cards

    async def run(self) -> NoReturn:
        """Write until cancelled."""
        backoff = Backoff(base=_RETRY_FIRST_S, cap=_RETRY_LAST_S)
        while True:
            await self._awake.wait()
            await self._quiet()
            due, self._due = self._due, set()
            left = await self._write_all(due)
            if left == set():
                backoff.reset()
                continue
            self._due = None if left is None or self._due is None else self._due | left
            self._awake.set()
            await asyncio.sleep(backoff.next())

    async def _quiet(self) -> None:
        """Wait until for a moment nothing was prepared; where that does not end, for a while."""
        for _ in range(_SETTLES):
            self._awake.clear()
            await asyncio.sleep(_SETTLE_S)
            if not self._awake.is_set():
                return
        self._awake.clear()

    async def _write_all(self, due: set[str] | None) -> set[str] | None:
        """Write those claims (None: all); those that have to be tried again."""
        try:
            held = await self._claims()
        except QuadrantError as error:
            log.warning("claims' status not written; trying again", error=str(error))
            return due
        wanted = [c for c in held if c.phase == "done" and (due is None or c.uid in due)]
        limit = asyncio.Semaphore(_AT_ONCE)

        async def one(claim: PreparedClaim) -> bool:
            async with limit:
                return await self._write(claim)

        done = await asyncio.gather(*map(one, wanted))
        return {claim.uid for claim, ok in zip(wanted, done, strict=True) if not ok}

    async def _write(self, claim: PreparedClaim) -> bool:
        """Have one claim's status true; False when it has to be tried again."""
        try:
            await self._bring_up_to_date(claim, cached=True)
        except Conflict:
            return False
        except (NotFound, Invalid) as error:
            # Deleted, replaced, or no longer allocated to this node.
            log.info("claim's status has no place any more", claim=str(claim), error=str(error))
        except Forbidden as error:
            if not self._is_forbidden:
                self._is_forbidden = True
                log.warning("claims' status not written; see docs/install.md", error=str(error))
        except KubeError as error:
            log.info("claim's status not written", claim=str(claim), error=str(error))
            return False
        return True

    async def _bring_up_to_date(self, claim: PreparedClaim, *, cached: bool) -> None:
        path = f"/apis/{API_VERSION}/namespaces/{claim.namespace}/resourceclaims/{claim.name}"
        params = {"resourceVersion": "0"} if cached else {}
        found = decode(StatusOfClaim, await self._rest.get(path, params=params))
        if found.metadata.uid != claim.uid:
            return
        body = patch(claim, found, self._cards, driver=self._driver, now=self._clock())
        if body is None:
            return
        try:
            await self._rest.patch(f"{path}/status", body, MERGE_PATCH)
        except Conflict:
            if not cached:
                raise
            await self._bring_up_to_date(claim, cached=False)


def _gist(cards: Mapping[str, CardHealth]) -> dict[str, tuple[str, str]]:
    return {name: (status(card), message(card)) for name, card in cards.items()}
