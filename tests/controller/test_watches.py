"""What the watches make of what the cluster tells, against a real HTTP server."""

import asyncio

import msgspec
import pytest

from driver.controller.claims import ClaimWriter
from driver.controller.cluster import Cluster
from driver.controller.commit import Allow
from driver.controller.held import HeldDevices
from driver.controller.rivals import Rivals
from driver.controller.term import Term
from driver.controller.watches import TurnedBackError, Watches
from driver.kube.rest import Rest
from driver.model.core import Pod
from driver.model.ids import ObjectKey
from driver.model.resourceclaim import ResourceClaim
from tests.controller.commits import Json, claim, cluster, commit, gpu, picked, proposed, request
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


def unversioned(made: Json) -> Json:
    """For the server, which gives the version."""
    return made | {"metadata": made["metadata"] | {"resourceVersion": ""}}


def watching(rest: Rest, at: Cluster, landed: list[float] | None = None) -> Watches:
    """The watches of a cluster in which time stands still."""
    return Watches(
        rest,
        at,
        Nobody(),
        HeldDevices(rest, None, at.ledger),
        rivals=Rivals(ClaimWriter(rest), Term(), clock=lambda: 7.0),
        taint_rules=None,
        clock=lambda: 7.0,
        landed=(landed if landed is not None else []).append,
    )


async def test_a_cluster_that_is_turned_back_ends_the_process() -> None:
    """After etcd was restored, versions come again; the ledger would take them for old news."""
    at = cluster("compact", a=[gpu(0)])
    async with ApiServer() as server, server.session() as session:
        rest = Rest(session)
        watches = watching(rest, at)
        running = asyncio.create_task(watches.run())
        await watches.claims.synced()
        server.objects.advance(1000)
        server.put(CLAIMS, unversioned(claim("c", request())))
        await watches.claims.relist()
        server.objects.version = 500
        again = asyncio.create_task(watches.claims.relist())
        with pytest.raises(ExceptionGroup) as ended:
            await asyncio.wait_for(running, 20)
        again.cancel()
    (error,) = ended.value.exceptions
    assert isinstance(error.__cause__, TurnedBackError)


async def test_an_allocation_that_lands_is_told_once() -> None:
    """With the time since our answer; what comes of it afterwards says nothing about that."""
    at, landed = cluster("compact", a=[gpu(0), gpu(1)]), list[float]()
    async with ApiServer() as server, server.session() as session:
        watches = watching(Rest(session), at, landed)
        running = asyncio.create_task(watches.run())
        await watches.claims.synced()
        server.put(CLAIMS, unversioned(claim("c", request())))
        await watches.claims.relist()
        known = at.claims[ObjectKey("ns", "c")].metadata
        free = claim("c", request(), version=int(known.resource_version))
        free["metadata"]["uid"] = known.uid
        ruling = commit(at, free, picked("gpu-1"), now=5.0)
        assert isinstance(ruling, Allow)
        results = [msgspec.to_builtins(one, enc_hook=str) for one in ruling.results]
        stored = unversioned(proposed(free, *results))
        for annotations in ({}, {"seen": "again"}):
            stored["metadata"]["annotations"] = annotations
            server.put(CLAIMS, stored)
            await watches.claims.relist()
        running.cancel()
    assert landed == [2.0]
