"""Nominations of waiting pods follow what is free, and come back after a refusal."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from driver.controller.cluster import Cluster
from driver.controller.planner import Plan, Planner
from driver.controller.revision import Revision, Rhythm
from driver.kube.errors import Conflict, NotFound
from driver.kube.events import Subject
from driver.model.core import Pod
from driver.model.events import NODE_NOMINATED, EventKind
from driver.model.resourceclaim import ResourceClaim
from driver.wire.decode import convert
from driver.wire.encode import builtins
from driver.wire.patch import Operation
from tests.controller.commits import cluster, gpu, picked, proposed, request
from tests.controller.placements import add_claim, modes, node, pod, schedule
from tests.kube.clock import FakeClock


class Pods:
    """Writes go here in place of an API server; what they lead to is told like a watch does."""

    def __init__(self) -> None:
        self.written: list[tuple[str, str | None]] = []
        self.failure: Exception | None = None

    async def patch_pod(self, namespace: str, name: str, operations: list[Operation]) -> None:
        """Revision has no business with the rest of a pod."""
        raise AssertionError(f"{namespace}/{name}: {operations}")

    async def patch_pod_status(
        self, namespace: str, name: str, operations: list[Operation]
    ) -> None:
        """Remember the nomination that is written, or None where it is taken back."""
        assert namespace == "ns"
        assert operations[0] == {"op": "test", "path": "/metadata/uid", "value": name}
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        last = operations[-1]
        assert last["path"] == "/status/nominatedNodeName"
        if last["op"] == "remove":
            assert operations[1]["op"] == "test"
        self.written.append((name, last.get("value")))


class Told:
    """Remembers on which pods something was told."""

    def __init__(self) -> None:
        self.pods: list[str] = []

    def record(self, subject: Subject, kind: EventKind, note: str) -> None:
        """Remember the pod."""
        assert kind is NODE_NOMINATED
        assert note.startswith("node ")
        self.pods.append(subject.name)


class World:
    """Revision of one cluster, step by step."""

    def __init__(self, at: Cluster) -> None:
        self.at = at
        self.clock = FakeClock()
        self.pods = Pods()
        self.told = Told()
        self.planner = Planner(at)
        self.revision = Revision(
            at,
            self.planner,
            writer=self.pods,
            tells=self.told,
            clock=self.clock,
            rhythm=Rhythm(),
        )

    def waits(self, name: str, *claims: str, nominated: str = "", **spec: Any) -> Pod:
        """A pod without a gate is shown by the watch; its UID is its name."""
        for one in claims or (f"{name}-c",):
            if not any(key.name == one for key in self.at.claims):
                add_claim(self.at, one, request())
        status = {"nominatedNodeName": nominated} if nominated else {}
        made = pod(name, *(claims or (f"{name}-c",)), gated=False, status=status, **spec)
        self.at.put_pod(made)
        self.revision.pod_changed(made)
        return made

    def placed(self, name: str, on: str, *claims: str) -> Pod:
        """A pod was nominated by placement, and the watch has shown it."""
        made = self.waits(name, *claims)
        stays = self.planner.stays(made, on)
        assert stays is not None
        self.planner.nominate(made, stays)
        return self.waits(name, *claims, nominated=on)

    def taken(self, on: str, name: str = "other", device: str = "gpu-0") -> None:
        """Somebody else's claim is committed on this node."""
        free = add_claim(self.at, name, request())
        stored = proposed(free, picked(device, node=on), node=on)
        stored["metadata"] = stored["metadata"] | {"resourceVersion": "50"}
        self.at.put_claim(convert(ResourceClaim, stored), now=0.0)

    def released(self, name: str = "other") -> None:
        """That claim is free again."""
        add_claim(self.at, name, request(), version=60)


def two() -> World:
    """Two nodes with one card each."""
    return World(cluster(a=[gpu(0)], b=[gpu(0)]))


async def test_capacity_that_is_freed_goes_to_who_waits() -> None:
    """In the scheduler's order, and no device to two pods."""
    world = two()
    world.taken("a", "x")
    world.taken("b", "y")
    world.waits("p")
    world.waits("q", priority=5)
    await world.revision.revise()
    assert world.pods.written == []
    world.released("y")
    await world.revision.revise()
    assert world.pods.written == [("q", "b")]
    assert world.at.nominations.get("p") is None
    nomination = world.at.nominations.get("q")
    assert nomination is not None
    assert nomination.node == "b"
    assert world.told.pods == ["q"]


async def test_equal_pods_that_do_not_fit_are_planned_once() -> None:
    """A thousand replicas in a full cluster cost one plan a look."""
    world = two()
    world.taken("a", "x")
    world.taken("b", "y")
    plans: list[str] = []
    original = world.planner.plan

    def counting(of: Pod) -> Plan:
        plans.append(of.metadata.name)
        return original(of)

    world.planner.plan = counting  # type: ignore[method-assign, assignment]
    for number in range(20):
        world.waits(f"p{number:02}")
    world.waits("z", annotations=modes("spread", "compact"))
    await world.revision.revise()
    assert plans == ["p00", "z"]


async def test_a_nomination_that_no_longer_fits_is_replaced() -> None:
    """Another claim took the device; the other node has one."""
    world = two()
    world.placed("p", "a")
    world.taken("a")
    await world.revision.revise()
    assert world.pods.written == []
    world.clock.time += 2.0
    await world.revision.revise()
    assert world.pods.written == [("p", "b")]


async def test_a_nomination_without_a_place_to_go_is_taken_back() -> None:
    """Only the one that is still there, and nothing is expected any more."""
    world = two()
    world.taken("b", "y")
    world.placed("p", "a")
    await world.revision.revise()
    world.taken("a", "x")
    world.clock.time += 2.0
    await world.revision.revise()
    assert world.pods.written == [("p", None)]
    assert world.at.nominations.get("p") is None


async def test_a_nomination_that_still_fits_is_left_alone() -> None:
    """Also where another node would be better by now, and where its own device is the last."""
    world = World(cluster(a=[gpu(0), gpu(1)], b=[gpu(0), gpu(1)]))
    world.placed("p", "a")
    await world.revision.revise()
    world.taken("a", device="gpu-1")
    world.clock.time += 2.0
    await world.revision.revise()
    assert world.pods.written == []
    nomination = world.at.nominations.get("p")
    assert nomination is not None
    assert [r.device for one in nomination.promised.values() for r in one.devices.results] == [
        "gpu-0"
    ]


async def test_a_young_nomination_is_not_disturbed() -> None:
    """Most are used within a second; it is looked at when it is older, without a new occasion."""
    world = two()
    world.placed("p", "a")
    await world.revision.revise()
    world.taken("a")
    await world.revision.revise()
    assert world.pods.written == []
    assert world.revision._unsettled
    world.clock.time += 2.0
    await world.revision.revise()
    assert world.pods.written == [("p", "b")]


async def test_looking_changes_no_facts() -> None:
    """Else one look would be the occasion for the next, for ever."""
    world = two()
    for name, on in (("p", "a"), ("q", "b")):
        world.placed(name, on)
    await world.revision.revise()
    world.at.put_node(node("a", labels={"any": "change"}))
    world.clock.time += 2.0
    before = world.at.facts.now
    await world.revision.revise()
    assert world.at.facts.now == before


async def test_after_a_take_over_nominations_are_taken_up() -> None:
    """A new leader finds them in the pods' status, and counts with them."""
    world = two()
    world.waits("p", nominated="b")
    await world.revision.revise()
    nomination = world.at.nominations.get("p")
    assert nomination is not None
    assert nomination.node == "b"
    assert world.pods.written == []


async def test_a_nomination_by_somebody_else_is_left_alone() -> None:
    """The scheduler nominates for a pod that will preempt others: nothing is free there yet."""
    world = two()
    world.taken("b", "y")
    world.waits("p", nominated="b")
    await world.revision.revise()
    assert world.pods.written == []
    assert world.at.nominations.get("p") is None


async def test_a_node_that_the_scheduler_turned_down_is_not_nominated_again() -> None:
    """Not until something changes there: the scheduler knows of pods that we do not."""
    world = World(cluster(a=[gpu(0)]))
    world.placed("p", "a")
    world.waits("p")
    assert world.at.nominations.get("p") is None
    await world.revision.revise()
    assert world.pods.written == []
    world.at.put_node(node("a", labels={"any": "change"}))
    await world.revision.revise()
    assert world.pods.written == [("p", "a")]


async def test_what_it_held_is_free_for_others_then() -> None:
    """The next pod gets the node; the one that was turned down another one."""
    world = two()
    world.placed("p", "a")
    world.waits("p")
    world.waits("q")
    await world.revision.revise()
    assert ("q", "a") in world.pods.written
    assert world.at.nominations.get("q") is not None


async def test_a_pod_that_is_being_bound_is_left_alone() -> None:
    """Its claim has its devices, or is about to be written."""
    world = two()
    world.placed("p", "a")
    schedule(world.at, "p-c", "a", version=20)
    world.at.put_node(node("a", labels={"any": "change"}))
    await world.revision.revise()
    world.clock.time += 2.0
    await world.revision.revise()
    assert world.pods.written == []
    nomination = world.at.nominations.get("p")
    assert nomination is not None
    assert not nomination.promised


async def test_a_claim_that_lost_its_devices_is_placed_again() -> None:
    """The scheduler rolled back: what the claim will get is expected anew."""
    world = two()
    world.placed("p", "a")
    schedule(world.at, "p-c", "a", version=20)
    await world.revision.revise()
    add_claim(world.at, "p-c", request(), version=30)
    world.clock.time += 2.0
    await world.revision.revise()
    nomination = world.at.nominations.get("p")
    assert nomination is not None
    assert list(nomination.promised) == ["uid-p-c"]


@pytest.mark.parametrize("error", [NotFound, Conflict])
async def test_a_write_that_fails_leaves_nothing_expected(error: type[NotFound]) -> None:
    """The pod may be gone; if it is not, it is looked at on the next occasion."""
    world = two()
    world.pods.failure = error("no", status=404)
    world.waits("p")
    await world.revision.revise()
    assert world.at.nominations.get("p") is None
    assert world.told.pods == []


async def test_a_pod_that_is_bound_while_it_is_decided_keeps_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What other pods count with is the node that it has, not the one that was chosen."""
    world = two()
    waiting = world.waits("p")
    plan = Planner.plan

    def interrupted(self: Planner, pod: Pod) -> Plan:
        decided = plan(self, pod)
        assert decided.node == "a"
        bound = convert(Pod, builtins(waiting) | {"spec": {"nodeName": "b"}})
        world.at.put_pod(bound)
        world.revision.pod_changed(bound)
        return decided

    monkeypatch.setattr(Planner, "plan", interrupted)
    await world.revision.revise()
    assert world.at.occupancy.node_of("p") == "b"
    assert len(world.at.nominations) == 0
    assert world.pods.written == []


async def test_a_bad_policy_does_not_stop_the_others() -> None:
    """It is the namespace's, say; the pod is left as it is."""
    world = two()
    world.waits("p", annotations={"quadrant.dev/node-policy": "best"})
    world.waits("q")
    await world.revision.revise()
    assert world.pods.written == [("q", "a")]


# Running


async def run_until(world: World, done: Any) -> None:
    """Let revision run until this holds."""
    task = asyncio.create_task(world.revision.run())
    try:
        async with asyncio.timeout(10):
            while not done():
                assert not task.done(), task.exception()
                await asyncio.sleep(0)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_refused_pod_gets_a_node_that_fits_a_moment_later() -> None:
    """Not at once: the scheduler takes its own nomination back first, and would take ours too."""
    world = World(cluster(a=[gpu(0)], b=[gpu(0)]))
    world.placed("p", "a")
    world.taken("a")
    began = world.clock.now()
    world.revision.refused("p")
    await run_until(world, lambda: world.pods.written)
    assert world.pods.written[0] == ("p", "b")
    assert world.clock.now() - began >= 0.4


async def test_a_refusal_of_a_pod_that_is_gone_or_bound_by_now_is_nothing() -> None:
    """The next one is served all the same."""
    world = two()
    bound = world.waits("q")
    world.at.put_pod(convert(Pod, builtins(bound) | {"spec": {"nodeName": "a"}}))
    world.revision.pod_changed(world.at.pods["q"])
    world.waits("p")
    for uid in ("gone", "q", "p"):
        world.revision.refused(uid)
    await run_until(world, lambda: world.pods.written)
    assert {name for name, _ in world.pods.written} == {"p"}


async def test_a_change_is_the_occasion_for_a_look() -> None:
    """Without one, nothing is done."""
    world = two()
    world.taken("a", "x")
    world.taken("b", "y")
    world.waits("p")
    looks = 0
    original = world.revision.revise

    async def counting() -> None:
        nonlocal looks
        looks += 1
        await original()

    world.revision.revise = counting  # type: ignore[method-assign]
    await run_until(world, lambda: len(world.clock.slept) > 50)
    assert looks == 1
    world.released("x")
    await run_until(world, lambda: world.pods.written)
    assert world.pods.written == [("p", "a")]


async def test_a_pod_that_we_fail_on_stops_no_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of ours that one pod brings up leaves that pod as it is, and no other."""
    question = Planner.question

    def failing(self: Planner, pod: Pod) -> bytes | None:
        if pod.metadata.name == "poison":
            raise ZeroDivisionError
        return question(self, pod)

    monkeypatch.setattr(Planner, "question", failing)
    world = World(cluster("compact", a=[gpu(0)]))
    world.waits("poison")
    world.waits("fine")
    await world.revision.revise()
    assert world.pods.written == [("fine", "a")]
