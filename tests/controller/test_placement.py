"""The node axis from end to end: placement, a scheduler, and the commit hook between them."""

import asyncio
from contextlib import suppress

import pytest
from prometheus_client import CollectorRegistry

from driver.controller.cluster import Cluster
from driver.controller.commit import Allow
from driver.controller.placement import Placement
from driver.controller.planner import Planner
from driver.controller.podwriter import RestPodWriter
from driver.kube.events import Subject
from driver.kube.rest import Rest
from driver.model.core import Pod
from driver.model.events import EventKind
from driver.model.resourceclaim import ResourceClaim
from driver.obs.metrics import ControllerMetrics
from driver.wire.decode import convert
from driver.wire.encode import builtins
from tests.controller.commits import CLASS, cluster, commit, gpu, proposed, request
from tests.controller.placements import A10G, T4, add_claim, first_fit, modes, pod
from tests.kube.apiserver import ApiServer
from tests.kube.clock import FakeClock
from tests.kube.objects import Change, Json
from tests.kube.watcher import until

PODS = "/api/v1/pods"


class Silent:
    """Tells nobody."""

    def record(self, subject: Subject, kind: EventKind, note: str) -> None:
        """Nothing."""


class World:
    """Pods on an API server, placement at work, and a scheduler that can be let run."""

    def __init__(self, server: ApiServer, at: Cluster, placement: Placement) -> None:
        self.server = server
        self.at = at
        self.placement = placement
        self.devices: dict[str, str] = {}
        self.refusals = 0
        # What the scheduler thinks is free; a node it is wrong about leads to a refusal.
        self.blind_to: set[str] = set()
        self._version = 100
        server.objects.listeners.append(self._watched)

    def _watched(self, change: Change) -> None:
        if change.key.collection == PODS and change.new is not None:
            made = convert(Pod, change.new)
            self.at.put_pod(made)
            self.placement.pod_changed(made)

    def create(self, name: str, *, mebi: int = 0, policies: tuple[str, str] = ("", "")) -> None:
        """A gated pod with one claim."""
        annotations = modes(*policies)
        add_claim(self.at, f"{name}-gpu", request(mebi=mebi), annotations=annotations)
        self.server.put(PODS, builtins(pod(name, f"{name}-gpu", annotations=annotations)))

    def schedule(self) -> None:
        """One round of the scheduler: every pod that waits is tried once."""
        for key in [key for key in self.server.objects.objects if key.collection == PODS]:
            found = self.server.objects.objects[key]
            spec = found["spec"]
            if not spec.get("schedulingGates") and not spec.get("nodeName"):
                self._try(found)

    def _try(self, found: Json) -> None:
        name = found["metadata"]["name"]
        nominated = found.get("status", {}).get("nominatedNodeName", "")
        for node in dict.fromkeys((nominated, *sorted(self.at.nodes))):
            picked = first_fit(self.at, f"{name}-gpu", node, blind=node in self.blind_to)
            if node and picked:
                self._commit(found, node, picked)
                return
        if nominated:
            self._status(found, {})

    def _commit(self, found: Json, node: str, picked: list[Json]) -> None:
        name = found["metadata"]["name"]
        free = builtins(
            next(c for c in self.at.claims.values() if c.metadata.name == f"{name}-gpu")
        )
        ruling = commit(self.at, free, *picked, node=node)
        if not isinstance(ruling, Allow):
            self.refusals += 1
            self.blind_to.discard(node)
            self._status(found, {})
            self.placement.renominate(found["metadata"]["uid"])
            return
        self._version += 1
        landed = proposed(free, *[builtins(result) for result in ruling.results], node=node)
        landed["metadata"] = landed["metadata"] | {"resourceVersion": str(self._version)}
        self.at.put_claim(convert(ResourceClaim, landed), now=100.0)
        self.devices[name] = ", ".join(f"{r.pool}/{r.device}" for r in ruling.results)
        bound = found | {"spec": found["spec"] | {"nodeName": node}}
        self.server.put(PODS, bound)

    def _status(self, found: Json, status: Json) -> None:
        self.server.put(PODS, found | {"status": status})

    def nominated(self, name: str) -> str:
        """The node that a pod's status names."""
        status = self.server.get(PODS, name, "ns").get("status", {})
        node: str = status.get("nominatedNodeName", "")
        return node

    def gated(self) -> bool:
        """Whether a pod still has a gate."""
        return any(
            item["spec"].get("schedulingGates") for item in self.server.objects.in_collection(PODS)
        )


async def at_work(at: Cluster, story: object) -> None:
    """Run placement for as long as the story takes."""
    async with ApiServer() as server, server.session() as session:
        writer = RestPodWriter(Rest(session))
        metrics = ControllerMetrics(CollectorRegistry())
        placement = Placement(
            at, Planner(at), writer=writer, tells=Silent(), metrics=metrics, clock=FakeClock()
        )
        task = asyncio.create_task(placement.run())
        try:
            await story(World(server, at, placement))  # type: ignore[operator]
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


@pytest.mark.parametrize(
    ("policies", "per_node", "gpus"),
    [
        (("compact", "compact"), [4], 2),
        (("spread", "compact"), [2, 2], 2),
        (("compact", "spread"), [4], 4),
        (("spread", "spread"), [2, 2], 4),
    ],
)
async def test_the_two_by_two(policies: tuple[str, str], per_node: list[int], gpus: int) -> None:
    """Four gated pods at once, a scheduler with its own first fit, and what comes out of it."""

    async def story(world: World) -> None:
        for number in range(4):
            world.create(f"p{number}", mebi=7500, policies=policies)
        await until(lambda: not world.gated())
        world.schedule()
        nodes = [device.partition("/")[0] for device in world.devices.values()]
        assert sorted(nodes.count(name) for name in set(nodes)) == per_node
        assert len(set(world.devices.values())) == gpus

    await at_work(cluster(t4=T4, a10g=A10G), story)


async def test_pods_beyond_the_capacity_wait_and_follow() -> None:
    """None is over-committed; each release leads to a nomination, and that to a pod."""

    async def story(world: World) -> None:
        for number in range(5):
            world.create(f"p{number}")
        await until(lambda: not world.gated())
        world.schedule()
        assert sorted(world.devices.values()) == ["a/gpu-0", "b/gpu-0", "c/gpu-0"]
        waiting = [f"p{n}" for n in range(5) if f"p{n}" not in world.devices]
        assert not any(world.nominated(name) for name in waiting)
        add_claim(world.at, "p1-gpu", request(), version=900)
        await until(lambda: any(world.nominated(name) for name in waiting))
        world.schedule()
        assert len(world.devices) == 4

    await at_work(cluster(a=[gpu(0)], b=[gpu(0)], c=[gpu(0)]), story)


async def test_a_refused_pod_goes_where_it_fits() -> None:
    """The scheduler believes a full node to be free; after the refusal it is sent elsewhere."""

    async def story(world: World) -> None:
        world.create("first")
        await until(lambda: not world.gated())
        world.schedule()
        assert world.devices == {"first": "a/gpu-0"}
        world.create("second")
        await until(lambda: not world.gated())
        # The nomination gets lost, so that the scheduler tries the nodes in its own order.
        world.blind_to.add("a")
        world._status(world.server.get(PODS, "second", "ns"), {})
        world.schedule()
        assert world.refusals == 1
        await until(lambda: world.nominated("second") == "b")
        world.schedule()
        assert world.devices["second"] == "b/gpu-0"

    await at_work(cluster(a=[gpu(0)], b=[gpu(0)]), story)


def test_the_class_of_these_tests_is_ours() -> None:
    """Else nothing above would be placed by us."""
    assert list(cluster(a=[gpu(0)]).classes) == [CLASS]
