"""The leader's label: on one pod, the leader's, whatever happened before."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from driver.controller.leaderlabel import AGAIN_S, BORNE, LeaderLabel
from driver.kube.rest import ONCE, Rest
from driver.model.ids import ObjectKey
from driver.model.names import LEADER_LABEL
from tests.kube.apiserver import ApiServer
from tests.kube.clock import FakeClock
from tests.kube.objects import Refusal
from tests.kube.watcher import until

PODS = "/api/v1/pods"
OURS = ObjectKey("quadrant-system", "controller-a")


class Replica:
    """One replica's label, and whether it leads."""

    def __init__(self, rest: Rest) -> None:
        self.leads = False
        self.clock = FakeClock()
        self.label = LeaderLabel(rest, OURS, leads=lambda: self.leads, clock=self.clock)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The task at work."""
        task = asyncio.create_task(self.label.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def pod(server: ApiServer, name: str, *, labelled: bool) -> None:
    """Put a controller's pod into the server."""
    labels = {"app": "quadrant"} | ({LEADER_LABEL: BORNE} if labelled else {})
    server.put(PODS, {"metadata": {"name": name, "namespace": OURS.namespace, "labels": labels}})


def labels(server: ApiServer, name: str) -> dict[str, str]:
    """A pod's labels now."""
    found: dict[str, Any] = server.get(PODS, name, OURS.namespace)
    return dict(found["metadata"]["labels"])


def bears(server: ApiServer, name: str) -> bool:
    """Whether the pod has the label."""
    return LEADER_LABEL in labels(server, name)


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    """An API server with the pods of two replicas, neither of which leads."""
    async with ApiServer() as running:
        pod(running, "controller-a", labelled=False)
        pod(running, "controller-b", labelled=False)
        yield running


@pytest.fixture
async def replica(server: ApiServer) -> AsyncIterator[Replica]:
    """The replica of the first pod."""
    async with server.session() as session:
        yield Replica(Rest(session, policy=ONCE))


async def test_it_follows_the_leadership(server: ApiServer, replica: Replica) -> None:
    """The label comes with the lease and goes with it; other labels stay."""
    async with replica.running():
        replica.leads = True
        await until(lambda: bears(server, "controller-a"))
        replica.leads = False
        await until(lambda: not bears(server, "controller-a"))
    assert labels(server, "controller-a") == {"app": "quadrant"}


async def test_others_lose_it(server: ApiServer, replica: Replica) -> None:
    """An earlier leader that cannot write any more does not keep the API server's calls."""
    pod(server, "controller-b", labelled=True)
    replica.leads = True
    async with replica.running():
        await until(lambda: bears(server, "controller-a") and not bears(server, "controller-b"))


async def test_a_restarted_process_begins_without(server: ApiServer, replica: Replica) -> None:
    """A container that died while it led comes back in a pod that still has the label."""
    pod(server, "controller-a", labelled=True)
    async with replica.running():
        await until(lambda: not bears(server, "controller-a"))


async def test_a_lost_label_comes_back(server: ApiServer, replica: Replica) -> None:
    """Whoever takes it off, the leader puts it on again in time."""
    replica.leads = True
    async with replica.running():
        await until(lambda: bears(server, "controller-a"))
        pod(server, "controller-a", labelled=False)
        await until(lambda: bears(server, "controller-a"))


async def test_a_failed_write_is_tried_again(server: ApiServer, replica: Replica) -> None:
    """The API server is away for some time; nothing is forgotten meanwhile."""
    server.refuse(Refusal(503, "ServiceUnavailable"), times=3)
    replica.leads = True
    async with replica.running():
        await until(lambda: bears(server, "controller-a"))


async def test_leaving_is_for_good(server: ApiServer, replica: Replica) -> None:
    """A replica that is about to end gets no more calls, though the lease is still its own."""
    replica.leads = True
    async with replica.running():
        await until(lambda: bears(server, "controller-a"))
        await replica.label.leave()
        assert not bears(server, "controller-a")
        later = replica.clock.time + 2 * AGAIN_S
        await until(lambda: replica.clock.time > later)
        assert not bears(server, "controller-a")


async def test_a_follower_writes_once(server: ApiServer, replica: Replica) -> None:
    """Followers only make sure at their start; a thousand looks are no load."""
    async with replica.running():
        await until(lambda: replica.clock.time > 1000.0 + 500)
    assert len([one for one in server.requests if "controller-a" in one]) == 1
