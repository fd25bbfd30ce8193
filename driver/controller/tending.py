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
from driver.controller.templates import Templates
from driver.kube.errors import KubeError
from driver.model.ids import ClaimUid

_log = structlog.get_logger(__name__)

OFTEN_S = 1.0
SELDOM_S = 120.0


class Tending:
    """The recurring duties of the leader; `clock` gives monotonic seconds."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        claims: ClaimWriter,
        templates: Templates,
        held: HeldDevices,
        clock: Callable[[], float],
    ) -> None:
        self._cluster = cluster
        self._claims = claims
        self._templates = templates
        self._held = held
        self._clock = clock
        self._reaper = Reaper()

    async def run(self) -> Never:
        """Tend for ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(_repeat(self._often, every=OFTEN_S))
            group.create_task(_repeat(self._seldom, every=SELDOM_S))
        raise AssertionError("the duties never end by themselves")

    async def _often(self) -> None:
        now = self._clock()
        for answer in self._cluster.ledger.overdue(now):
            await expiry.settle(
                answer, ledger=self._cluster.ledger, claims=self._claims, now=self._clock()
            )
        for claim in self._reaper.due(self._cluster, now):
            if await self._claims.deallocate(claim):
                _log.info(
                    "unused allocation taken away",
                    claim=f"{claim.metadata.namespace}/{claim.metadata.name}",
                )

        await self._held.tend()

    async def _seldom(self) -> None:
        uids = {ClaimUid(claim.metadata.uid) for claim in self._cluster.claims.values()}
        self._cluster.tidy(existing=uids, now=self._clock())
        await self._templates.collect(self._cluster.pods.values())


async def _repeat(duty: Callable[[], Awaitable[None]], *, every: float) -> Never:
    while True:
        try:
            await duty()
        except KubeError as error:
            _log.warning("duty put off", duty=duty.__name__, error=str(error))
        await asyncio.sleep(every)
