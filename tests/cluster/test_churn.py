"""Two minutes at the machine's limit with everything killed once: no double use, nothing lost."""

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from driver.kube.rest import Rest
from driver.kube.session import open_session
from hack.deployment import Deployment
from tests.cluster import history
from tests.cluster.churn import API, Churn, Fleet, bound, create_pod, delete_pod, listed
from tests.cluster.site import hack_cluster

pytestmark = [pytest.mark.cluster, pytest.mark.churn]
NAME = "churn"
SECONDS = 120
# Longer than the webhook's timeout, shorter than the lease: the leader comes back as the leader.
FROZEN_S = 6.0


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    """A control plane without nodes, and a controller."""
    hack_cluster(NAME, "up", "--control-plane-only", "--qps", "1000", "--json-storage")
    try:
        made = Deployment(json.loads(hack_cluster(NAME, "status", "-o", "json")), tmp_path)
        try:
            made.up()
            yield made
        finally:
            made.down()
    finally:
        hack_cluster(NAME, "down")


@pytest.fixture
async def nodes(deployment: Deployment) -> AsyncIterator[Fleet]:
    """Sixty nodes in it."""
    async with open_session(deployment.state["kubeconfig"]) as session:
        made = Fleet(Rest(session), whole=40, shared=20)
        await made.create()
        yield made


async def test_churn(deployment: Deployment, nodes: Fleet) -> None:
    """Create, delete, kill, freeze; then replay etcd's history, clean up, and fill every place."""
    churn = Churn(nodes, seed=1)
    await asyncio.gather(churn.run(SECONDS), chaos(deployment))
    # A special claim that vanishes while its pod is being bound blocks its devices in the book of
    # kube-scheduler for two minutes and longer, with or without us (design, "What the scheduler
    # believes"). A new scheduler has a right book: what waits now, waits because of us.
    await asyncio.to_thread(hack_cluster, NAME, "restart", "kube-scheduler")
    await settled(nodes)

    judge = history.Judge(deployment.state["etcd"])
    published = history.devices(await listed(nodes.rest, f"{API}/resourceslices"))
    assert await asyncio.to_thread(judge.wrongs, published) == []
    places = nodes.whole_places + nodes.shared_places
    assert judge.allocations > places, "no place was used twice: this was no churn"

    await asyncio.gather(
        *(delete_pod(nodes.rest, p["metadata"]["name"]) for p in await nodes.pods())
    )
    await eventually("no claim is left", lambda: nothing(nodes, "resourceclaims"), within=90)
    await eventually("no taint is left", lambda: nothing(nodes, "devicetaintrules"), within=30)

    wanted = [("one" if index % 2 else "native") for index in range(nodes.whole_places)]
    wanted += ["share"] * nodes.shared_places
    for start in range(0, len(wanted), 16):
        batch = enumerate(wanted[start : start + 16], start)
        await asyncio.gather(*(create_pod(nodes.rest, f"fill-{i}", kind) for i, kind in batch))
    await eventually("every place is filled", lambda: all_bound(nodes, len(wanted)), within=150)


async def chaos(deployment: Deployment) -> None:
    """Kill the controller and the scheduler, freeze the controller beyond the webhook's timeout."""
    await asyncio.sleep(SECONDS * 0.2)
    deployment.controller.send(signal.SIGKILL)
    await asyncio.to_thread(deployment.controller.stop)
    await asyncio.to_thread(deployment.start_controller)
    await asyncio.sleep(SECONDS * 0.15)
    await asyncio.to_thread(hack_cluster, NAME, "kill", "kube-scheduler", "--signal", "KILL")
    await asyncio.to_thread(hack_cluster, NAME, "restart", "kube-scheduler")
    await asyncio.sleep(SECONDS * 0.15)
    deployment.controller.send(signal.SIGSTOP)
    await asyncio.sleep(FROZEN_S)
    deployment.controller.send(signal.SIGCONT)


async def settled(nodes: Fleet) -> None:
    """No pod waits for a place while there is one for it."""

    async def quiet() -> bool:
        pods, claims = await nodes.pods(), await nodes.claims()
        waiting = [p for p in pods if not p["spec"].get("nodeName")]
        taken = [
            result
            for claim in claims
            for result in (claim.get("status", {}).get("allocation") or {})
            .get("devices", {})
            .get("results", ())
        ]
        shares = sum("shareID" in result for result in taken)
        free = {
            "whole": nodes.whole_places - (len(taken) - shares),
            "share": nodes.shared_places - shares,
        }
        kinds = {pod["metadata"]["labels"]["kind"] for pod in waiting}
        # Two cards of one group may be nowhere though single ones are left.
        return not (free["whole"] and kinds & {"one", "native"}) and not (
            free["share"] and "share" in kinds
        )

    await eventually("no pod waits beside a free place", quiet, within=120)


async def nothing(nodes: Fleet, resource: str) -> bool:
    """Whether no object of this kind exists."""
    return not await listed(nodes.rest, f"{API}/{resource}")


async def all_bound(nodes: Fleet, count: int) -> bool:
    """Whether so many pods have a node."""
    return len(bound(await nodes.pods())) == count


async def eventually(what: str, met: Callable[[], Any], *, within: float) -> None:
    """Ask until it is so."""
    ends = time.monotonic() + within
    while not await met():
        assert time.monotonic() < ends, f"not after {within:.0f} s: {what}"
        await asyncio.sleep(1.0)
