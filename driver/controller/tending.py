"""What the leader looks after from time to time, so that nothing stays behind.

Each duty is idempotent and is simply done again when it fails.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Never

import structlog

from driver.controller import expiry
from driver.controller.claims import ClaimWriter
from driver.controller.cluster import Cluster
from driver.controller.held import HeldDevices
from driver.controller.reaper import Reaper
from driver.controller.sleepers import Sleepers
from driver.controller.templates import Templates
from driver.kube.errors import KubeError
from driver.model.errors import InvalidObjectError
from driver.model.ids import ClaimUid
from driver.model.resourceclaim import ResourceClaim

_log = structlog.get_logger(__name__)

OFTEN_S = 1.0
NOW_AND_THEN_S = 5.0
SELDOM_S = 120.0


class Tending:
    """The recurring duties of the leader; `clock` gives monotonic seconds.

    `on_reclaimed` is told of every allocation that was taken away because nobody used it.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        claims: ClaimWriter,
        templates: Templates,
        held: HeldDevices,
        clock: Callable[[], float],
        on_reclaimed: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._claims = claims
        self._templates = templates
        self._held = held
        self._clock = clock
        self._on_reclaimed = on_reclaimed
        self._reaper = Reaper()
        self._sleepers = Sleepers()

    async def run(self) -> Never:
        """Tend for ever."""
        async with asyncio.TaskGroup() as group:
            # Each by itself, so that one that fails keeps none of the others from its work.
            for duty in (self._settle, self._reap, self._held.tend):
                group.create_task(_repeat(duty, every=OFTEN_S))
            group.create_task(_repeat(self._wake, every=NOW_AND_THEN_S))
            group.create_task(_repeat(self._seldom, every=SELDOM_S))
        raise AssertionError("the duties never end by themselves")

    async def _settle(self) -> None:
        for answer in self._cluster.ledger.overdue(self._clock()):
            settled = expiry.settle(
                answer, ledger=self._cluster.ledger, claims=self._claims, now=self._clock()
            )
            await _try(settled, what=f"settle {answer.claim}")

    async def _reap(self) -> None:
        for claim in self._reaper.due(self._cluster, self._clock()):
            await _try(self._deallocate(claim), what="reap")

    async def _deallocate(self, claim: ResourceClaim) -> None:
        if await self._claims.deallocate(claim):
            key = f"{claim.metadata.namespace}/{claim.metadata.name}"
            _log.info("unused allocation taken away", claim=key)
            self._on_reclaimed()

    async def _wake(self) -> None:
        device = self._sleepers.due(self._cluster, self._clock())
        if device is not None:
            await self._held.wake(device)

    async def _seldom(self) -> None:
        uids = {ClaimUid(claim.metadata.uid) for claim in self._cluster.claims.values()}
        self._cluster.tidy(existing=uids, now=self._clock())
        await self._templates.collect(self._cluster.pods.values())


async def _repeat(duty: Callable[[], Awaitable[None]], *, every: float) -> Never:
    while True:
        await _try(duty(), what=duty.__name__)
        await asyncio.sleep(every)


async def _try(duty: Awaitable[None], *, what: str) -> None:
    """Do it, or put it off; what cannot be done for one object is still done for the others."""
    try:
        await duty
    except (KubeError, InvalidObjectError) as error:
        _log.warning("duty put off", duty=what, error=str(error))
