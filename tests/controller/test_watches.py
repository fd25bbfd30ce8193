"""What the watches make of what the cluster tells, against a real HTTP server."""

import asyncio

import pytest

from driver.controller.held import HeldDevices
from driver.controller.watches import TurnedBackError, Watches
from driver.kube.rest import Rest
from driver.model.core import Pod
from driver.model.resourceclaim import ResourceClaim
from tests.controller.commits import claim, cluster, gpu, request
from tests.kube.apiserver import ApiServer

CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"


class Nobody:
    """Waits for nothing."""

    def pod_changed(self, pod: Pod) -> None:
        """Not waited for."""

    def pod_gone(self, uid: str) -> None:
        """Not waited for."""

    def claim_changed(self, claim: ResourceClaim) -> None:
        """Not waited for."""


async def test_a_cluster_that_is_turned_back_ends_the_process() -> None:
    """After etcd was restored, versions come again; the ledger would take them for old news."""
    at = cluster("compact", a=[gpu(0)])
    async with ApiServer() as server, server.session() as session:
        rest = Rest(session)
        held = HeldDevices(rest, None, at.ledger)
        watches = Watches(rest, at, Nobody(), held, taint_rules=None, clock=lambda: 0.0)
        running = asyncio.create_task(watches.run())
        await watches.claims.synced()
        server.objects.advance(1000)
        free = claim("c", request())
        server.put(CLAIMS, free | {"metadata": free["metadata"] | {"resourceVersion": ""}})
        await watches.claims.relist()
        server.objects.version = 500
        again = asyncio.create_task(watches.claims.relist())
        with pytest.raises(ExceptionGroup) as ended:
            await asyncio.wait_for(running, 20)
        again.cancel()
    (error,) = ended.value.exceptions
    assert isinstance(error.__cause__, TurnedBackError)
