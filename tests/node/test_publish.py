"""Slices on an API server: put back, owned, complained about once, left to the newer instance."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog

from driver.kube.rest import Rest
from driver.model.resourceslice import Device
from driver.node.device import device
from driver.node.publish import SLICES, Publisher
from driver.node.simulated import cards
from driver.node.turn import Turn
from tests.kube.apiserver import ApiServer

DRIVER, NODE = "gpu.quadrant.dev", "n1"
T4S = [device(card, shareable=True) for card in cards("4xT4", NODE)]


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    """A cluster with the node in it."""
    async with ApiServer() as running:
        running.put("/api/v1/nodes", {"metadata": {"name": NODE, "uid": "node-uid"}})
        yield running


@asynccontextmanager
async def publishing(
    server: ApiServer,
    devices: list[Device],
    may_publish: Callable[[], bool] = lambda: True,
) -> AsyncIterator[Publisher]:
    """A publisher that runs."""
    async with server.session() as session:
        publisher = Publisher(Rest(session), driver=DRIVER, node=NODE, may_publish=may_publish)
        publisher.devices(devices)
        task = asyncio.ensure_future(publisher.run())
        try:
            yield publisher
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def slices(server: ApiServer) -> list[dict[str, Any]]:
    """What the API server has."""
    return server.objects.in_collection(SLICES)


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something holds; a test that waits for ever fails by this limit."""
    async with asyncio.timeout(15):
        while not condition():  # noqa: ASYNC110  (the server tells nobody)
            await asyncio.sleep(0.01)


def names(server: ApiServer) -> list[str]:
    """The devices that a scheduler sees."""
    return [item["name"] for found in slices(server) for item in found["spec"]["devices"]]


WHOLE_POOL = [f"gpu-{index}" for index in range(4)]


async def test_slices_are_there_soon_and_belong_to_the_node(server: ApiServer) -> None:
    """With the node gone, the garbage collector takes them."""
    async with publishing(server, T4S):
        await until(lambda: names(server) == WHOLE_POOL)
    [found] = slices(server)
    assert found["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": "node-uid", "controller": True}
    ]
    assert names(server) == WHOLE_POOL, "the end of the plugin is not the end of the slices"


async def test_deleted_and_edited_slices_are_put_back(server: ApiServer) -> None:
    """By hand, or by the kubelet at its start."""
    async with publishing(server, T4S):
        await until(lambda: names(server) == WHOLE_POOL)
        for _ in range(2):
            server.remove(SLICES, slices(server)[0]["metadata"]["name"])
            await until(lambda: names(server) == WHOLE_POOL)
        [found] = slices(server)
        server.put(SLICES, {**found, "spec": {**found["spec"], "devices": []}})
        await until(lambda: names(server) == WHOLE_POOL)


async def test_changed_devices_are_published(server: ApiServer) -> None:
    """A card less."""
    async with publishing(server, T4S) as publisher:
        await until(lambda: names(server) == WHOLE_POOL)
        publisher.devices(T4S[:3])
        await until(lambda: names(server) == WHOLE_POOL[:3])


async def test_slices_of_others_are_left_alone(server: ApiServer) -> None:
    """Other drivers on this node, this driver on other nodes."""
    for name, driver, node in (("a", "other.example.com", NODE), ("b", DRIVER, "n2")):
        spec = {"driver": driver, "nodeName": node, "pool": {"name": node}, "devices": []}
        server.put(SLICES, {"metadata": {"name": name}, "spec": spec})
    async with publishing(server, T4S):
        await until(lambda: names(server) == WHOLE_POOL)
    assert len(slices(server)) == 3


async def test_a_node_that_is_not_there_yet_is_waited_for(server: ApiServer) -> None:
    """The plugin may start before the kubelet has registered its node."""
    server.remove("/api/v1/nodes", NODE)
    async with publishing(server, T4S):
        await until(lambda: any("/nodes/" in request for request in server.requests))
        server.put("/api/v1/nodes", {"metadata": {"name": NODE, "uid": "second-uid"}})
        await until(lambda: names(server) == WHOLE_POOL)
    assert slices(server)[0]["metadata"]["ownerReferences"][0]["uid"] == "second-uid"


async def test_what_is_dropped_is_said_once_and_not_sent_again(server: ApiServer) -> None:
    """A cluster with consumable capacity off."""

    def without_sharing(_old: Any, new: Any) -> Any:
        for item in new["spec"]["devices"]:
            item.pop("allowMultipleAllocations", None)
            for capacity in item["capacity"].values():
                capacity.pop("requestPolicy", None)
        return new

    server.objects.admission[SLICES] = without_sharing
    with structlog.testing.capture_logs() as logs:
        async with publishing(server, T4S):
            await until(lambda: names(server) == WHOLE_POOL)
            server.remove(SLICES, slices(server)[0]["metadata"]["name"])
            await until(lambda: names(server) == WHOLE_POOL)
            await asyncio.sleep(0.5)
    said = [log for log in logs if "drops part of the devices" in log["event"]]
    assert [log["fields"] for log in said] == [
        (
            "device.allowMultipleAllocations",
            "device.capacity.cores.requestPolicy",
            "device.capacity.memory.requestPolicy",
        )
    ]
    writes = [r for r in server.requests if r.startswith(("POST", "PATCH"))]
    assert len(writes) == 2


async def test_lost_answers_and_refusals_do_no_harm(server: ApiServer) -> None:
    """A create that went through unheard, and a write that somebody else got ahead of."""
    server.hang_up_after("POST")
    async with publishing(server, T4S) as publisher:
        await until(lambda: names(server) == WHOLE_POOL)
        server.hang_up_after("PATCH")
        publisher.devices(T4S[:2])
        await until(lambda: names(server) == WHOLE_POOL[:2])
        publisher.devices(T4S[:1])
        await until(lambda: names(server) == WHOLE_POOL[:1])
    assert len(slices(server)) == 1


async def test_only_the_newer_of_two_instances_publishes(server: ApiServer, tmp_path: Path) -> None:
    """Two versions that see the devices differently would else undo each other's writes."""
    old, new = Turn(tmp_path, "old"), None
    async with publishing(server, T4S, old.mine):
        await until(lambda: names(server) == WHOLE_POOL)
        new = Turn(tmp_path, "new")
        async with publishing(server, T4S[:2], new.mine):
            await until(lambda: names(server) == WHOLE_POOL[:2])
            server.remove(SLICES, slices(server)[0]["metadata"]["name"])
            await until(lambda: names(server) == WHOLE_POOL[:2])
    old.close()
    new.close()


def test_turns_go_to_the_newer_and_come_back_when_it_is_gone(tmp_path: Path) -> None:
    """A new version that crashes leaves the old one in charge."""
    now = [0.0]
    old = Turn(tmp_path, "old", clock=lambda: now[0])
    assert old.mine()
    new = Turn(tmp_path, "new", clock=lambda: now[0])
    assert not new.mine()
    assert not old.mine(), "the newer one waits"
    assert not old.mine(), "and is left some time to take over"
    assert new.mine()
    now[0] = 100.0
    assert not old.mine()
    new.close()
    assert old.mine()
    old.close()
