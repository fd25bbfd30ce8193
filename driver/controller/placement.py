"""The node axis at work, for all pods of ours: before their gate is lifted, and after.

Two parts share one planner, and so one view of what is expected: `Gates` and `Revision`.
"""

import asyncio
from typing import Never

from driver.controller.cluster import Cluster
from driver.controller.gates import Gates
from driver.controller.planner import Planner
from driver.controller.podwriter import PodWriter
from driver.controller.revision import Revision
from driver.controller.telling import Tells
from driver.kube.backoff import Clock
from driver.model.core import Pod
from driver.model.resourceclaim import ResourceClaim
from driver.obs.metrics import ControllerMetrics


class Placement:
    """Places pods and keeps their nominations true; `run` it as a task while this process leads.

    It is told of what has been entered into the cluster's state already, whether it runs or not.
    All calls but `run` return at once.
    """

    def __init__(
        self,
        cluster: Cluster,
        planner: Planner,
        *,
        writer: PodWriter,
        tells: Tells,
        metrics: ControllerMetrics,
        clock: Clock | None = None,
    ) -> None:
        self._gates = Gates(
            cluster, planner, writer=writer, tells=tells, metrics=metrics, clock=clock
        )
        self._revision = Revision(cluster, planner, writer=writer, tells=tells, clock=clock)

    def pod_changed(self, pod: Pod) -> None:
        """A pod of ours appeared or changed."""
        self._gates.pod_changed(pod)
        self._revision.pod_changed(pod)

    def pod_gone(self, uid: str) -> None:
        """A pod of ours is gone."""
        self._gates.pod_gone(uid)
        self._revision.pod_gone(uid)

    def claim_changed(self, claim: ResourceClaim) -> None:
        """A claim appeared or changed."""
        self._gates.claim_changed(claim)

    def renominate(self, uid: str) -> None:
        """A commit for this pod was refused: soon give it a node that fits (rule 9)."""
        self._revision.refused(uid)

    async def run(self) -> Never:
        """Place pods for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._gates.run(), name="gates")
            tasks.create_task(self._revision.run(), name="revision")
        raise AssertionError("placement never ends by itself")
