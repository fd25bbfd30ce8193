"""Which devices are still in use here though the cluster believes them to be free.

A pod that is deleted by force loses its claim at once, but its containers run on until the kubelet
has ended them, and only then it unprepares. Until that the device is tainted, so that nothing new
is sent to it; what was sent before the taint is refused by `driver.node.prepare`.

Claims are looked at when one was refused for it, and now and then: a watch on all claims would be
too much on every node, and pods seldom end like this. The reads may come from the API server's
cache; what they accuse a claim of is asked again without.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NoReturn, Protocol

import structlog

from driver.model.errors import QuadrantError
from driver.model.names import OCCUPIED_TAINT
from driver.model.resourceclaim import ResourceClaim
from driver.model.resourceslice import DeviceTaint
from driver.node.board import Taints
from driver.node.claims import ClaimRef
from driver.node.errors import StorageError
from driver.node.held import PreparedClaim
from driver.node.state.store import ClaimStore

# Name of this source on the board.
SOURCE = "occupied"

_PERIOD_S = 300.0
# Several claims are usually refused together, and unprepared together.
_SETTLE_S = 0.1


class Look(Protocol):
    """Reads a claim; from a cache where that is said to be good enough."""

    def __call__(
        self, namespace: str, name: str, *, cached: bool
    ) -> Awaitable[ResourceClaim | None]:
        """None when there is none of that name."""
        ...


log = structlog.get_logger(__name__)


class Occupied:
    """Keeps the taints of one source right; `run` it as a task."""

    def __init__(
        self,
        store: ClaimStore,
        *,
        driver: str,
        boot: str,
        release: Callable[[ClaimRef], Awaitable[None]],
        period: float = _PERIOD_S,
    ) -> None:
        self._store = store
        self._driver = driver
        self._boot = boot
        self._release = release
        self._period = period
        # By UID, the devices that a held claim has no right to any more.
        self._astray: dict[str, frozenset[str]] = {}
        self._wanted = asyncio.Event()

    def look(self) -> None:
        """Look soon: a claim was refused for what another one holds."""
        self._wanted.set()

    def unprepared(self, uid: str) -> None:
        """A claim has let go; if it was astray, its devices can be had again."""
        if uid in self._astray:
            self._wanted.set()

    async def run(self, look: Look, show: Callable[[str, Taints], None]) -> NoReturn:
        """Look until cancelled, the first time at once; a read that fails leaves what was known."""
        while True:
            self._wanted.clear()
            await self._examine(look)
            show(SOURCE, self._taints())
            with suppress(TimeoutError):
                # All nodes at one time would be felt by the API server.
                async with asyncio.timeout(self._period * random.uniform(0.5, 1.5)):  # noqa: S311
                    await self._wanted.wait()
            await asyncio.sleep(_SETTLE_S)

    async def _examine(self, look: Look) -> None:
        try:
            held = [claim for claim in await self._store.claims() if claim.boot == self._boot]
        except StorageError as error:
            log.warning("claims not looked at", error=str(error))
            return
        before, self._astray = self._astray, {}
        for claim in held:
            known = before.get(claim.uid, frozenset())
            try:
                astray = await self._strayed(claim, look)
            except QuadrantError as error:
                log.warning("claim not looked at", claim=str(claim), error=str(error))
                astray = known
            if astray and claim.found:
                await self._let_go(claim)
            elif astray:
                self._astray[claim.uid] = astray
                if astray != known:
                    log.warning(
                        "a claim is in use here that the cluster has given up: its pod was deleted "
                        "by force; its devices are tainted until the kubelet unprepares it",
                        claim=str(claim),
                        devices=sorted(astray),
                    )

    async def _strayed(self, claim: PreparedClaim, look: Look) -> frozenset[str]:
        """The devices of a held claim that it is not allocated any more."""
        for cached in (True, False):
            found = await look(claim.namespace, claim.name, cached=cached)
            astray = frozenset(d.device for d in claim.devices) - self._allocated(claim, found)
            if not astray:
                break
        return astray

    def _allocated(self, held: PreparedClaim, claim: ResourceClaim | None) -> frozenset[str]:
        if claim is None or claim.metadata.uid != held.uid or claim.status.allocation is None:
            return frozenset()
        results = claim.status.allocation.devices.results
        return frozenset(r.device for r in results if r.driver == self._driver)

    async def _let_go(self, claim: PreparedClaim) -> None:
        """Nobody unprepares what was only found in the API and may never have been prepared."""
        try:
            await self._release(ClaimRef(claim.namespace, claim.name, claim.uid))
            log.info("let go of a claim that was found in the API", claim=str(claim))
        except QuadrantError as error:
            log.warning("claim not let go of", claim=str(claim), error=str(error))

    def _taints(self) -> Taints:
        taint = DeviceTaint(key=f"{self._driver}/{OCCUPIED_TAINT}", effect="NoSchedule")
        devices = frozenset[str]().union(*self._astray.values())
        return dict.fromkeys(sorted(devices), (taint,))
