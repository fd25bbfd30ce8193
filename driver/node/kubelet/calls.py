"""What the kubelet's calls set in motion: who prepares, who unprepares, who is told of it."""

from functools import partial

from driver.node.claims import ClaimRef
from driver.node.containers.cdi import AnswerDevice
from driver.node.faults import Reach, pass_by
from driver.node.kubelet.service import ClaimWork, Preparing, Unpreparing
from driver.node.link import Link
from driver.node.local import LocalNode
from driver.node.meter import Meter
from driver.node.occupied import Occupied
from driver.node.prepare import Preparer
from driver.node.settings import NodeSettings


class Calls:
    """The work on claims, put together; make it where there is an event loop."""

    def __init__(
        self, local: LocalNode, settings: NodeSettings, *, meter: Meter, reach: Reach = pass_by
    ) -> None:
        self.link = Link()
        self._meter = meter
        self._preparer = Preparer(
            local.store,
            local.files,
            local.setup,
            get_claim=self.link.get_claim,
            node=lambda: local.facts,
            on_double_use=self._refused,
            reach=reach,
        )
        self.occupied = Occupied(
            local.store,
            driver=settings.driver,
            boot=local.boot,
            release=self._preparer.unprepare,
        )
        limit = settings.parallel_claims
        self.preparing: Preparing = ClaimWork(
            limit, self._prepare, told=partial(meter.claim, "prepare")
        )
        self.unpreparing: Unpreparing = ClaimWork(
            limit, self._unprepare, told=partial(meter.claim, "unprepare")
        )

    async def drain(self) -> None:
        """Wait for everything that was begun."""
        await self.preparing.drain()
        await self.unpreparing.drain()

    async def _prepare(self, claim: ClaimRef) -> tuple[AnswerDevice, ...]:
        answer = await self._preparer.prepare(claim)
        self.link.prepared(claim.uid)
        return answer

    async def _unprepare(self, claim: ClaimRef) -> None:
        await self._preparer.unprepare(claim)
        self.occupied.unprepared(claim.uid)

    def _refused(self, claim: ClaimRef, reason: str) -> None:
        self._meter.double_use()
        self.link.report_use(claim, reason)
        self.occupied.look()
