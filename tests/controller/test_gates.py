"""Gated pods get a node and lose the gate, over real HTTP, whatever goes wrong."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from driver.controller.cluster import Cluster
from driver.controller.gates import Gates, Pace
from driver.controller.planner import Plan, Planner
from driver.controller.podwriter import RestPodWriter
from driver.kube.events import Subject
from driver.kube.rest import ONCE, Rest
from driver.model import names
from driver.model.api import ObjectMeta
from driver.model.core import Pod
from driver.model.events import EventKind
from driver.obs.metrics import ControllerMetrics
from driver.wire.decode import convert
from tests.controller.commits import cluster, gpu, request
from tests.controller.placements import add_claim
from tests.kube.apiserver import ApiServer
from tests.kube.clock import FakeClock
from tests.kube.objects import Change, Json, Refusal
from tests.kube.watcher import until
from tests.logged import logged

PODS = "/api/v1/pods"
GATE = names.PLACEMENT_GATE


class Told:
    """Remembers what users are told."""

    def __init__(self) -> None:
        self.stories: list[tuple[str, str, str]] = []

    def record(self, subject: Subject, kind: EventKind, note: str) -> None:
        """Remember the pod, the reason and the note."""
        self.stories.append((subject.name, kind.reason, note))


class World:
    """A cluster's state, the API server with its pods, and the placement between them."""

    def __init__(
        self,
        server: ApiServer,
        placement: Gates,
        at: Cluster,
        *,
        told: Told,
        metrics: CollectorRegistry,
    ) -> None:
        self.server = server
        self.metrics = metrics
        self.placement = placement
        self.at = at
        self.told = told
        self.order: list[str] = []
        self.created = 0
        self.watching = True
        server.objects.listeners.append(self.watched)

    def watched(self, change: Change) -> None:
        """The watch of pods, without its delay."""
        if change.key.collection != PODS or not self.watching:
            return
        if change.new is None:
            assert change.old is not None
            uid = change.old["metadata"]["uid"]
            self.at.remove_pod(uid)
            self.placement.pod_gone(uid)
            return
        if not gates(change.new) and change.key.name not in self.order:
            self.order.append(change.key.name)
        made = convert(Pod, change.new)
        self.at.put_pod(made)
        self.placement.pod_changed(made)

    def create(
        self, name: str, *claims: str, gates: tuple[str, ...] = (GATE,), **spec: Any
    ) -> None:
        """A pod arrives, with its claims."""
        for one in claims or (f"{name}-c",):
            if not any(key.name == one for key in self.at.claims):
                add_claim(self.at, one, request())
        self.put(name, *(claims or (f"{name}-c",)), gates=gates, **spec)

    def put(
        self,
        name: str,
        *claims: str,
        gates: tuple[str, ...] = (GATE,),
        created: str = "",
        **spec: Any,
    ) -> None:
        """A pod arrives, later than all before it unless it says otherwise."""
        self.created += 1
        created = created or f"2026-01-01T00:00:{self.created:02}Z"
        entries = [{"name": one, "resourceClaimName": one} for one in claims]
        metadata = {"name": name, "namespace": "ns", "creationTimestamp": created}
        document: Json = {
            "metadata": metadata,
            "spec": {
                "schedulingGates": [{"name": gate} for gate in gates],
                "containers": [{"name": "main"}],
                "resourceClaims": entries,
                **spec,
            },
            "status": {"phase": "Pending"},
        }
        self.server.put(PODS, document)

    def pod(self, name: str) -> Json:
        """The pod as the API server has it."""
        return self.server.get(PODS, name, "ns")

    def node_of(self, name: str) -> str | None:
        """The nominated node; the pod must have lost the gate."""
        found = self.pod(name)
        assert GATE not in gates(found)
        node: str | None = found["status"].get("nominatedNodeName")
        return node

    async def ungated(self, *pods: str) -> None:
        """Wait until these pods have lost the gate."""
        await until(lambda: all(GATE not in gates(self.pod(name)) for name in pods))


def gates(pod: Json) -> list[str]:
    """The names of a raw pod's gates."""
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]


@asynccontextmanager
async def placing(at: Cluster, *, writes: int = 16) -> AsyncIterator[World]:
    """Placement at work on this cluster."""
    clock, told, metrics = FakeClock(), Told(), CollectorRegistry()
    async with ApiServer() as server, server.session() as session:
        placement = Gates(
            at,
            Planner(at),
            writer=RestPodWriter(Rest(session, policy=ONCE, clock=clock)),
            tells=told,
            metrics=ControllerMetrics(metrics),
            pace=Pace(writes=writes),
            clock=clock,
            jitter=lambda: 1.0,
        )
        world = World(server, placement, at, told=told, metrics=metrics)
        async with running(placement):
            yield world


@asynccontextmanager
async def running(placement: Gates) -> AsyncIterator[None]:
    """Run it until the block ends; what it fails with is raised."""
    task = asyncio.create_task(placement.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def three() -> Cluster:
    """Three nodes with one card each."""
    return cluster(a=[gpu(0)], b=[gpu(0)], c=[gpu(0)])


async def test_a_gated_pod_gets_a_node_and_loses_the_gate() -> None:
    """First the nomination, then the gate, so that the scheduler sees both; and it is told."""
    async with placing(three()) as world:
        world.create("p")
        await world.ungated("p")
        assert world.node_of("p") == "a"
        writes = [line for line in world.server.requests if line.startswith("PATCH")]
        assert writes == [
            "PATCH /api/v1/namespaces/ns/pods/p/status",
            "PATCH /api/v1/namespaces/ns/pods/p",
        ]
        await until(lambda: len(world.told.stories) == 1)
        assert world.told.stories[0][:2] == ("p", "NodeNominated")
        assert "node a by compact" in world.told.stories[0][2]


async def test_each_decision_counts_with_the_ones_before_it() -> None:
    """Nothing is committed yet, and still no device is planned twice; the fourth finds none."""
    async with placing(three()) as world:
        for name in "pqrs":
            world.create(name)
        await world.ungated(*"pqrs")
        assert [world.node_of(name) for name in "pqrs"] == ["a", "b", "c", None]
        await until(lambda: len(world.told.stories) == 4)
        assert ("s", "NoNodeFits") in {story[:2] for story in world.told.stories}


async def test_what_came_of_it_is_counted() -> None:
    """By result; with the time since the pod was created, and that of the decision."""
    async with placing(three()) as world:
        for name in "pqrs":
            world.create(name)
        await world.ungated(*"pqrs")
        await until(lambda: len(world.told.stories) == 4)

        def counted(name: str, **labels: str) -> float | None:
            return world.metrics.get_sample_value(name, labels)

        assert counted("quadrant_placements_total", result="nominated") == 3
        assert counted("quadrant_placements_total", result="fits-nowhere") == 1
        assert counted("quadrant_rejections_total", axis="node", reason="in-use") == 1
        assert counted("quadrant_placement_wait_seconds_count") == 4
        assert (counted("quadrant_placement_decision_seconds_count") or 0) >= 4


async def test_the_lines_of_a_placement_have_its_operation() -> None:
    """From the decision to the write, whatever came of it; pods do not share one."""
    with logged() as lines:
        async with placing(three()) as world:
            world.server.refuse(Refusal(500, "Broken"), path="/pods/p", method="PATCH", times=2)
            for name in "pqrs":
                world.create(name)
            await world.ungated(*"pqrs")
            await until(lambda: len(world.told.stories) == 4)
        told = [line for line in lines() if line["logger"].startswith("driver.controller")]
    assert {line["pod"] for line in told} == {f"ns/{name}" for name in "pqrs"}
    assert {"gate not lifted", "nomination not written"} <= {line["message"] for line in told}
    by_operation: dict[str, set[str]] = {}
    for line in told:
        by_operation.setdefault(line["operation"], set()).add(line["pod"])
    assert {len(pods) for pods in by_operation.values()} == {1}
    assert len(by_operation) > 4


async def test_the_gates_of_others_stay() -> None:
    """Wherever ours stands among them."""
    async with placing(three()) as world:
        world.create("p", gates=("first.example/gate", GATE, "last.example/gate"))
        await world.ungated("p")
        assert gates(world.pod("p")) == ["first.example/gate", "last.example/gate"]


async def test_a_gate_that_moved_meanwhile_is_found_again() -> None:
    """Somebody lifts a gate before ours between the watch and the write: no wrong gate goes."""
    async with placing(three()) as world:
        world.watching = False
        world.create("p", gates=("first.example/gate", GATE))
        stale = convert(Pod, world.pod("p"))
        moved = world.pod("p") | {
            "spec": world.pod("p")["spec"] | {"schedulingGates": [{"name": GATE}]}
        }
        world.server.put(PODS, moved)
        world.at.put_pod(stale)
        world.placement.pod_changed(stale)
        await until(lambda: sum(line.startswith("PATCH") for line in world.server.requests) >= 2)
        assert gates(world.pod("p")) == [GATE]
        latest = convert(Pod, world.pod("p"))
        world.watching = True
        world.at.put_pod(latest)
        world.placement.pod_changed(latest)
        await world.ungated("p")


async def test_high_priority_goes_first_then_the_oldest() -> None:
    """The order of the scheduler, for all that wait when there is room to decide."""
    at = three()
    async with placing(at, writes=1) as world:
        world.server.answering.clear()
        world.create("first")
        await until(lambda: len(world.server.requests) == 1)
        world.create("young", created="2026-01-03T00:00:00Z")
        world.create("old", created="2026-01-02T00:00:00Z")
        world.create("urgent", created="2026-01-04T00:00:00Z", priority=10)
        world.server.answering.set()
        await world.ungated("first", "young", "old", "urgent")
        assert world.order == ["first", "urgent", "old", "young"]
        assert world.node_of("young") is None


async def test_a_pod_waits_for_its_claims() -> None:
    """The claim controller makes them while the pod is gated; others are not held up."""
    async with placing(three()) as world:
        world.put("p", "later")
        world.create("q")
        await world.ungated("q")
        assert gates(world.pod("p")) == [GATE]
        add_claim(world.at, "later", request())
        world.placement.claim_changed(next(iter(world.at.claims.values())))
        await world.ungated("p")
        assert world.node_of("p") == "b"


async def test_an_error_in_the_policy_lifts_the_gate() -> None:
    """The pod must not hang; the scheduler places it without us."""
    at = three()
    at.namespaces["ns"] = ObjectMeta(name="ns", annotations={names.NODE_POLICY: "best"})
    async with placing(at) as world:
        world.create("p")
        await world.ungated("p")
        assert world.node_of("p") is None
        assert not len(at.nominations)


async def test_a_nomination_that_cannot_be_written_does_not_keep_the_gate() -> None:
    """Then nothing is expected of the pod either."""
    async with placing(three()) as world:
        world.server.refuse(Refusal(403, "Forbidden"), path="/status")
        world.create("p")
        await world.ungated("p")
        assert world.node_of("p") is None
        assert not len(world.at.nominations)


FAULTS: dict[str, Callable[[ApiServer], None]] = {
    "unavailable": lambda server: server.refuse(Refusal(503, "Unavailable"), times=5),
    "conflict": lambda server: server.refuse(Refusal(409, "Conflict"), times=2, path="pods/p"),
    "webhook": lambda server: server.refuse(Refusal(422, "Invalid"), times=3, path="pods/p"),
    "forbidden": lambda server: server.refuse(Refusal(403, "Forbidden"), times=4),
    "no answer": lambda server: server.hang_up(times=3),
    "lost answer": lambda server: server.hang_up_after("PATCH"),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_what_fails_for_a_while_is_tried_again(fault: str) -> None:
    """With waits in between; in the end nobody has a gate, or is expected where it was not sent.

    A nomination whose answer is lost is not counted on; revision takes it up later.
    """
    async with placing(three()) as world:
        FAULTS[fault](world.server)
        world.create("p")
        world.create("q")
        await world.ungated("p", "q")
        for name in "pq":
            expected = world.at.nominations.get(world.pod(name)["metadata"]["uid"])
            assert expected is None or expected.node == world.node_of(name)


async def test_a_pod_that_is_deleted_meanwhile_is_expected_nowhere() -> None:
    """The write finds nobody; the next pod gets the place."""
    at = cluster(a=[gpu(0)])
    async with placing(at) as world:
        world.server.answering.clear()
        world.create("p")
        await until(lambda: len(world.server.requests) == 1)
        world.server.remove(PODS, "p", "ns")
        world.server.answering.set()
        world.create("q")
        await world.ungated("q")
        assert world.node_of("q") == "a"
        assert len(at.nominations) == 1


async def test_a_pod_that_goes_while_it_is_decided_leaves_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its successor of the same name makes the writes fail, but not as for a pod that is gone."""
    at = cluster(a=[gpu(0)])
    plan = Planner.plan
    async with placing(at) as world:

        def interrupted(self: Planner, pod: Pod) -> Plan:
            decided = plan(self, pod)
            if world.created == 1:
                world.server.remove(PODS, "p", "ns")
                world.create("p", "successor-c")
            return decided

        monkeypatch.setattr(Planner, "plan", interrupted)
        world.create("p")
        await world.ungated("p")
        assert world.node_of("p") == "a"
        assert len(at.nominations) == 1


async def test_a_successor_of_the_same_name_is_another_pod() -> None:
    """Writes for a deleted pod do not hit the one that has its name now."""
    async with placing(three()) as world:
        world.create("p")
        await world.ungated("p")
        await until(lambda: len(world.told.stories) == 1)
        gone = convert(Pod, world.pod("p"))
        world.server.remove(PODS, "p", "ns")
        world.watching = False
        world.create("p", "p-c")
        stale = convert(
            Pod,
            {
                "metadata": {"name": "p", "namespace": "ns", "uid": gone.metadata.uid},
                "spec": {
                    "schedulingGates": [{"name": GATE}],
                    "resourceClaims": [{"name": "c", "resourceClaimName": "p-c"}],
                },
            },
        )
        before = len(world.server.requests)
        world.at.put_pod(stale)
        world.placement.pod_changed(stale)
        await until(lambda: len(world.server.requests) >= before + 2)
        assert gates(world.pod("p")) == [GATE]
        assert "nominatedNodeName" not in world.pod("p")["status"]


async def test_an_old_state_of_the_pod_does_not_place_it_again() -> None:
    """The watch may still show the gate that was lifted a moment ago."""
    async with placing(three()) as world:
        world.watching = False
        world.create("p")
        shown = convert(Pod, world.pod("p"))
        world.at.put_pod(shown)
        world.placement.pod_changed(shown)
        await world.ungated("p")
        await until(lambda: len(world.told.stories) == 1)
        before = len(world.server.requests)
        world.placement.pod_changed(shown)
        world.create("q", "q-c")
        other = convert(Pod, world.pod("q"))
        world.at.put_pod(other)
        world.placement.pod_changed(other)
        await world.ungated("q")
        assert all("/pods/q" in line for line in world.server.requests[before:])


async def test_writes_overlap_up_to_a_bound() -> None:
    """Decisions do not wait for the API server, but not for ever ahead of it either."""
    at = cluster(a=[gpu(index) for index in range(8)])
    async with placing(at, writes=3) as world:
        world.server.answering.clear()
        for number in range(6):
            world.create(f"p{number}")
        await until(lambda: len(world.server.requests) == 3)
        assert len(at.nominations) == 3
        world.server.answering.set()
        await world.ungated(*(f"p{number}" for number in range(6)))


async def test_a_pod_that_we_fail_on_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of ours that one pod brings up: that pod is left to the scheduler, no more."""
    plan = Planner.plan

    def failing(self: Planner, pod: Pod) -> Plan:
        if pod.metadata.name == "poison":
            raise ZeroDivisionError
        return plan(self, pod)

    monkeypatch.setattr(Planner, "plan", failing)
    async with placing(cluster("compact", a=[gpu(0)])) as world:
        world.create("poison")
        world.create("fine")
        await world.ungated("poison", "fine")
        assert world.node_of("poison") is None
        assert world.node_of("fine") == "a"
