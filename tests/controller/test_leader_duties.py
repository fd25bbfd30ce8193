"""What a leader does beside answering: settle, fence, reap, taint; against a real HTTP server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from driver.controller import expiry
from driver.controller.claims import ClaimWriter
from driver.controller.held import HeldDevices
from driver.controller.leadership import Leadership
from driver.controller.ledger import Answer, AnswerKey, Ledger
from driver.controller.reaper import UNUSED_FOR_S, Reaper
from driver.controller.rivals import Rivals
from driver.controller.takeover import fence_all, take_over
from driver.controller.templates import Templates
from driver.controller.tending import Tending
from driver.controller.term import Term
from driver.kube.informer import Informer
from driver.kube.lease import Timing
from driver.kube.rest import Rest
from driver.kube.store import Event, Upsert
from driver.model import names
from driver.model.core import Pod
from driver.model.deviceclass import DeviceTaintRule
from driver.model.ids import ClaimUid, DeviceId, ObjectKey
from driver.model.resourceclaim import ResourceClaim
from driver.wire.decode import convert
from tests.controller.commits import claim, cluster, gpu, picked, proposed, request
from tests.kube.apiserver import ApiServer
from tests.kube.objects import Refusal
from tests.kube.watcher import until

CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
DEADLINE_S = Timing().renew_deadline
GPU_0 = DeviceId("gpu.quadrant.dev", "a", "gpu-0")


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    """An API server on loopback."""
    async with ApiServer() as running:
        yield running


@pytest.fixture
async def rest(server: ApiServer) -> AsyncIterator[Rest]:
    """A client of it."""
    async with server.session() as session:
        yield Rest(session)


def stored(server: ApiServer, free: dict[str, Any]) -> ResourceClaim:
    """Put a claim into the server; the claim as it stores it."""
    free = free | {"metadata": free["metadata"] | {"resourceVersion": ""}}
    return convert(ResourceClaim, server.put(CLAIMS, free))


def soon(seconds: float) -> float:
    """A moment of the event loop's clock."""
    return asyncio.get_running_loop().time() + seconds


def version(item: ResourceClaim) -> int:
    """A claim's resource version."""
    return int(item.metadata.resource_version)


def answered(ledger: Ledger, item: ResourceClaim) -> Answer:
    """An answer to a question about this state of the claim."""
    results = convert(ResourceClaim, proposed(claim("c"), picked("gpu-0"))).status.allocation
    assert results is not None
    answer = Answer(
        claim=ObjectKey(item.metadata.namespace, item.metadata.name),
        uid=ClaimUid(item.metadata.uid),
        key=AnswerKey(version(item), "a"),
        results=results.devices.results,
        at=0.0,
    )
    ledger.answer(answer)
    return answer


async def ended(task: asyncio.Task[Any]) -> None:
    """End what would go on for ever."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_an_overdue_answer_is_fenced_off_and_falls(server: ApiServer, rest: Rest) -> None:
    """The claim is still at the base: it is moved, so the write can never land; then it falls."""
    ledger = Ledger()
    item = stored(server, claim("c", request()))
    await expiry.settle(answered(ledger, item), ledger=ledger, claims=ClaimWriter(rest), now=50.0)
    assert not ledger.use()
    now = server.get(CLAIMS, "c", "ns")
    assert int(now["metadata"]["resourceVersion"]) > version(item)
    assert names.FENCE in now["metadata"]["annotations"]


async def test_an_overdue_answer_that_landed_unseen_is_kept(server: ApiServer, rest: Rest) -> None:
    """The live look finds the allocation that the watch has not told yet."""
    ledger = Ledger()
    item = stored(server, claim("c", request()))
    answer = answered(ledger, item)
    server.put(CLAIMS, proposed(server.get(CLAIMS, "c", "ns"), picked("gpu-0")))
    await expiry.settle(answer, ledger=ledger, claims=ClaimWriter(rest), now=50.0)
    assert ledger.outstanding() == 0
    assert ledger.use()[GPU_0].exclusive


@pytest.mark.parametrize("successor", [False, True])
async def test_an_answer_to_a_claim_that_is_gone_falls(
    server: ApiServer, rest: Rest, successor: bool
) -> None:
    """Gone means that no claim of this UID is there, whoever has the name now."""
    ledger = Ledger()
    answer = answered(ledger, stored(server, claim("c", request())))
    server.remove(CLAIMS, "c", "ns")
    if successor:
        other = claim("c", request())
        stored(server, other | {"metadata": other["metadata"] | {"uid": "another"}})
    await expiry.settle(answer, ledger=ledger, claims=ClaimWriter(rest), now=50.0)
    assert not ledger.use()


async def test_a_new_leader_moves_every_free_claim(server: ApiServer, rest: Rest) -> None:
    """One that moved on by itself needs no fence."""
    free = stored(server, claim("free", request()))
    moved = stored(server, claim("moved", request()))
    server.put(CLAIMS, server.get(CLAIMS, "moved", "ns"))
    assert await fence_all([free, moved], ClaimWriter(rest), until=soon(10))
    for before in (free, moved):
        after = server.get(CLAIMS, before.metadata.name, "ns")
        assert int(after["metadata"]["resourceVersion"]) > version(before)


async def test_a_take_over_is_announced_though_claims_go_meanwhile(
    server: ApiServer, rest: Rest
) -> None:
    """The claim to be marked is gone, and the watch says so while the write is under way."""
    for name in ("a", "b", "c"):
        stored(server, proposed(claim(name, request()), picked("gpu-0")))
    claims = Informer(rest, CLAIMS, ResourceClaim, on_event=lambda _event: None)
    watching = asyncio.create_task(claims.run())
    await claims.synced()
    marked: list[str] = []

    class Slow(ClaimWriter):
        async def announce(self, claim: ObjectKey) -> None:
            marked.append(claim.name)
            if len(marked) == 1:
                server.remove(CLAIMS, claim.name, claim.namespace)
                await until(lambda: claim not in claims.objects)
            await super().announce(claim)

    await asyncio.wait_for(take_over(claims, Slow(rest), silent_from=soon(0)), 20)
    assert len(marked) == 2
    await ended(watching)


async def test_a_take_over_leaves_allocated_claims_alone(server: ApiServer, rest: Rest) -> None:
    """Nothing can land on them: one gets the mark of a new leader, the others not even that."""
    before = [
        stored(server, proposed(claim(name, request()), picked("gpu-0"))) for name in ("a", "b")
    ]
    claims = Informer(rest, CLAIMS, ResourceClaim, on_event=lambda _event: None)
    watching = asyncio.create_task(claims.run())
    await claims.synced()
    await asyncio.wait_for(take_over(claims, ClaimWriter(rest), silent_from=soon(0)), 20)
    after = [server.get(CLAIMS, one.metadata.name, "ns")["metadata"] for one in before]
    moved = [
        int(now["resourceVersion"]) > version(one) for one, now in zip(before, after, strict=True)
    ]
    assert sorted(moved) == [False, True]
    await ended(watching)


async def test_a_fence_that_fails_proves_nothing(server: ApiServer, rest: Rest) -> None:
    """Then the new leader waits instead."""
    free = stored(server, claim("free", request()))
    server.hang_up(times=99)
    assert not await fence_all([free], ClaimWriter(rest), until=soon(1))
    assert version(free) == int(server.get(CLAIMS, "free", "ns")["metadata"]["resourceVersion"])


async def test_a_fence_that_fails_once_is_tried_again(server: ApiServer, rest: Rest) -> None:
    """An API server that hiccups does not cost the long wait."""
    free = stored(server, claim("free", request()))
    server.hang_up()
    assert await fence_all([free], ClaimWriter(rest), until=soon(10))
    assert version(free) < int(server.get(CLAIMS, "free", "ns")["metadata"]["resourceVersion"])


async def test_what_lands_before_its_fence_is_known_before_the_first_answer(
    server: ApiServer, rest: Rest
) -> None:
    """The fence finds the claim moved on, by the very answer; the watch is slow to tell of it."""
    stored(server, claim("c", request()))
    ledger = Ledger()

    def tell(event: Event[ResourceClaim]) -> None:
        if isinstance(event, Upsert):
            ledger.observe(event.object, 0.0)

    def land(asked: web.Request) -> None:
        now = server.get(CLAIMS, "c", "ns")
        if asked.method == "PATCH" and "status" not in now:
            watches, server.objects.listeners = server.objects.listeners, []
            server.put(CLAIMS, proposed(now, picked("gpu-0")))
            server.objects.listeners = watches

    server.faults.append(land)
    claims = Informer(rest, CLAIMS, ResourceClaim, on_event=tell)
    watching = asyncio.create_task(claims.run())
    await claims.synced()
    await asyncio.wait_for(take_over(claims, ClaimWriter(rest), silent_from=soon(0)), 20)
    assert ledger.use()[GPU_0].exclusive
    await ended(watching)


async def test_deallocation_needs_the_claim_as_it_was_seen(server: ApiServer, rest: Rest) -> None:
    """A claim that was reserved meanwhile keeps its allocation."""
    seen = stored(server, proposed(claim("c", request()), picked("gpu-0")))
    server.put(CLAIMS, server.get(CLAIMS, "c", "ns"))
    assert not await ClaimWriter(rest).deallocate(seen)
    fresh = convert(ResourceClaim, server.get(CLAIMS, "c", "ns"))
    assert await ClaimWriter(rest).deallocate(fresh)
    assert not server.get(CLAIMS, "c", "ns")["status"].get("allocation")


async def test_one_answer_that_cannot_be_settled_holds_up_no_other(
    server: ApiServer, rest: Rest
) -> None:
    """Somebody's policy may forbid us to write to one claim, for ever."""
    at = cluster("compact", a=[gpu(0)])
    for name in ("a", "b"):
        answered(at.ledger, stored(server, claim(name, request())))
    refusal = Refusal(403, "Forbidden", "not in this namespace")
    server.refuse(refusal, times=99, path="/resourceclaims/a")
    tending = Tending(
        at,
        claims=ClaimWriter(rest),
        templates=Templates(rest, lambda: datetime.now(UTC)),
        held=HeldDevices(rest, None, at.ledger),
        clock=lambda: 50.0,
        on_reclaimed=lambda: None,
    )
    running = asyncio.create_task(tending.run())
    await until(lambda: at.ledger.outstanding() == 1)
    assert at.ledger.answered(ClaimUid("uid-a"))
    await ended(running)


def pod(uid: str, wants: tuple[int, int], node: str = "") -> Pod:
    """A pod that wants so many claims, and so many cards as extended resources."""
    claims, extended = wants
    limits = {"limits": {"deviceclass.resource.kubernetes.io/gpu.quadrant.dev": str(extended)}}
    spec = {
        "nodeName": node,
        "resourceClaims": [{"name": f"r{index}"} for index in range(claims)],
        "containers": [{"name": "main", "resources": limits if extended else {}}],
    }
    return convert(Pod, {"metadata": {"name": "p", "namespace": "ns", "uid": uid}, "spec": spec})


@pytest.mark.parametrize(
    ("wants", "node", "reserved", "reaped"),
    [
        ((2, 0), "", False, True),
        ((1, 0), "", False, False),
        ((1, 1), "", False, True),
        ((2, 0), "a", False, False),
        ((2, 0), "", True, False),
    ],
)
def test_the_reaper_takes_only_what_a_waiting_pod_cannot_use(
    wants: tuple[int, int], node: str, reserved: bool, reaped: bool
) -> None:
    """Rule 11: allocated, unreserved, its pod has other claims and has been unbound for a while."""
    at = cluster("compact", a=[gpu(0)])
    at.put_pod(pod("pod-1", wants, node))
    item = proposed(claim("c", request()), picked("gpu-0"))
    owner = {"kind": "Pod", "name": "p", "uid": "pod-1", "controller": True}
    item["metadata"]["ownerReferences"] = [owner]
    if reserved:
        item["status"]["reservedFor"] = [{"resource": "pods", "name": "p", "uid": "pod-1"}]
    at.put_claim(convert(ResourceClaim, item), 0.0)
    reaper = Reaper()
    assert reaper.due(at, 0.0) == []
    due = reaper.due(at, UNUSED_FOR_S)
    assert [one.metadata.name for one in due] == (["c"] if reaped else [])


async def test_a_held_device_is_tainted_until_it_is_released(server: ApiServer, rest: Rest) -> None:
    """Rule 10, with the rule found again after a restart."""
    ledger = Ledger()
    holder = convert(ResourceClaim, proposed(claim("c"), picked("gpu-0")))
    ledger.observe(holder, 0.0)
    held = HeldDevices(rest, RULES, ledger)
    held.want([GPU_0])
    await held.tend()
    (rule,) = server.objects.in_collection(RULES)
    assert rule["spec"]["deviceSelector"]["device"] == "gpu-0"
    assert rule["spec"]["taint"]["effect"] == "NoSchedule"
    restarted = HeldDevices(rest, RULES, ledger)
    restarted.put(convert(DeviceTaintRule, rule))
    assert names.HELD in rule["metadata"]["labels"]
    await restarted.tend()
    assert server.objects.in_collection(RULES)
    ledger.observe(convert(ResourceClaim, claim("c", version=11)), 1.0)
    await restarted.tend()
    assert not server.objects.in_collection(RULES)


async def test_a_device_that_cannot_be_tainted_now_holds_up_nothing(
    server: ApiServer, rest: Rest
) -> None:
    """The taint of a device that was released is taken away; the other one follows in time."""
    ledger = Ledger()
    ledger.observe(convert(ResourceClaim, proposed(claim("c"), picked("gpu-0"))), 0.0)
    held = HeldDevices(rest, RULES, ledger)
    held.want([GPU_0])
    await held.tend()
    (rule,) = server.objects.in_collection(RULES)
    held.put(convert(DeviceTaintRule, rule))
    ledger.observe(convert(ResourceClaim, claim("c", version=11)), 1.0)
    ledger.observe(convert(ResourceClaim, proposed(claim("d"), picked("gpu-1"))), 1.0)
    held.want([DeviceId(GPU_0.driver, GPU_0.pool, "gpu-1")])
    server.refuse(Refusal(403, "Forbidden"))
    await held.tend()
    assert not server.objects.in_collection(RULES)
    await held.tend()
    (rule,) = server.objects.in_collection(RULES)
    assert rule["spec"]["deviceSelector"]["device"] == "gpu-1"


async def test_a_wake_is_a_rule_without_effect_that_goes_at_once(
    server: ApiServer, rest: Rest
) -> None:
    """For the scheduler it is a change of the slice; nobody is kept off the device."""
    held = HeldDevices(rest, RULES, Ledger())
    await held.wake(GPU_0)
    await held.wake(GPU_0)
    (rule,) = server.objects.in_collection(RULES)
    assert rule["spec"]["deviceSelector"]["device"] == "gpu-0"
    assert rule["spec"]["taint"]["effect"] == "None"
    held.put(convert(DeviceTaintRule, rule))
    await held.tend()
    assert not server.objects.in_collection(RULES)


async def test_a_wake_needs_taint_rules(server: ApiServer, rest: Rest) -> None:
    """Where the API server has none, pods wait for the scheduler's own look."""
    await HeldDevices(rest, None, Ledger()).wake(GPU_0)
    assert not server.requests


def test_a_term_answers_only_between_its_beginning_and_its_deadline() -> None:
    """Not before the earlier answers are over, not past the renew deadline."""
    term = Term()
    assert term.refusal(0.0) is not None
    assert not term.taking_over(0.0)
    term.renewed(10.0)
    assert "waits" in (term.refusal(1.0) or "")
    assert term.taking_over(1.0)
    assert not term.taking_over(10.0)
    term.begin(after=5.0)
    assert term.refusal(4.9) is not None
    assert term.refusal(5.0) is None
    assert not term.taking_over(5.0)
    assert term.refusal(10.0) is not None
    term.renewed(20.0)
    assert term.refusal(10.0) is None
    term.end()
    assert term.refusal(11.0) is not None


def test_a_term_in_doubt_needs_a_renewal_that_began_later() -> None:
    """The answer to an earlier one may have waited while the clock stood still."""
    term = Term()
    term.begin(after=0.0)
    term.renewed(10.0)
    term.doubt(4.0)
    assert term.refusal(4.0) is not None
    term.renewed(3.9 + DEADLINE_S)
    assert term.refusal(4.0) is not None
    term.renewed(4.1 + DEADLINE_S)
    assert term.refusal(4.2) is None


async def test_a_paused_leader_notices_the_next_one_by_its_mark(
    server: ApiServer, rest: Rest
) -> None:
    """Before it is shown anything later; its own marks, and those that anybody writes, are none."""
    held = stored(server, proposed(claim("held", request()), picked("gpu-0")))
    ours, theirs = ClaimWriter(rest), ClaimWriter(rest)
    term = Term()
    term.renewed(100.0)
    term.begin(after=0.0)
    rivals = Rivals(ours, term, clock=lambda: 1.0)
    known: dict[str, ResourceClaim] = {}
    told: list[bool] = []

    def tell(event: Event[ResourceClaim]) -> None:
        if isinstance(event, Upsert):
            name = event.object.metadata.name
            rivals.look(event.object, before=known.get(name))
            known[name] = event.object
            told.append(term.refusal(1.0) is None)

    claims = Informer(rest, CLAIMS, ResourceClaim, on_event=tell)
    watching = asyncio.create_task(claims.run())
    await claims.synced()
    key = ObjectKey(held.metadata.namespace, held.metadata.name)
    await ours.announce(key)
    await theirs.mark(key)
    successor = Informer(rest, CLAIMS, ResourceClaim, on_event=lambda _event: None)
    also_watching = asyncio.create_task(successor.run())
    await successor.synced()
    await asyncio.wait_for(take_over(successor, theirs, silent_from=soon(0)), 20)
    stored(server, claim("later", request()))
    await until(lambda: "later" in known)
    assert told == [True, True, True, False, False]
    await ended(watching)
    await ended(also_watching)


async def test_a_leader_whose_duties_fail_answers_no_more() -> None:
    """A controller that half works must restart: its error comes out of `run`."""
    term = Term()

    async def duties(*, silent_from: float, resumed: bool) -> None:
        term.begin(after=silent_from)
        await asyncio.sleep(0)
        raise RuntimeError("out of order")

    leadership = Leadership(term, duties)
    running = asyncio.create_task(leadership.run())
    await asyncio.sleep(0)
    leadership.acquired(silent_from=0.0, resumed=False)
    leadership.renewed(100.0)
    with pytest.raises(RuntimeError, match="out of order"):
        await running
    assert term.refusal(1.0) is not None


async def test_a_term_that_was_lost_during_its_take_over_is_not_resumed() -> None:
    """Answers of the leader before may still land, whoever held the lease meanwhile."""
    term = Term()
    told: list[tuple[float, bool]] = []
    through = asyncio.Event()

    async def duties(*, silent_from: float, resumed: bool) -> None:
        told.append((silent_from, resumed))
        if not resumed:
            await through.wait()
        term.begin(after=silent_from)

    leadership = Leadership(term, duties)
    for moment, resumed in ((10.0, False), (7.0, True), (8.0, True), (9.0, True)):
        leadership.acquired(silent_from=moment, resumed=resumed)
        leadership.renewed(100.0)
        await asyncio.sleep(0)
        if moment == 8.0:
            through.set()
            await until(lambda: term.begun)
        leadership.lost()
        await asyncio.sleep(0)
    assert told == [(10.0, False), (10.0, False), (10.0, False), (9.0, True)]


async def test_duties_end_with_the_lease() -> None:
    """Losing the lease cancels what the leader was doing."""
    ended = asyncio.Event()

    async def duties(*, silent_from: float, resumed: bool) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    leadership = Leadership(Term(), duties)
    leadership.acquired(silent_from=0.0, resumed=False)
    await asyncio.sleep(0)
    leadership.lost()
    await asyncio.wait_for(ended.wait(), 5)
