"""The hook around the decision: whether we may answer, who the pod is, what follows a refusal."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from driver.admission import commit
from driver.admission.commit import CommitHook
from driver.admission.server import Allowed, Answer, Denied
from driver.controller.claims import ClaimWriter
from driver.controller.cluster import TIDY_S, Cluster
from driver.controller.commit import Allow, Deny
from driver.controller.proposal import Proposal
from driver.controller.strangers import Strangers
from driver.controller.term import Term
from driver.kube.rest import ONCE, Rest
from driver.model import names
from driver.model.ids import ClaimUid, DeviceId
from driver.model.resourceclaim import ResourceClaim
from driver.obs.metrics import ControllerMetrics
from driver.wire.decode import convert
from tests.controller.commits import claim, cluster, gpu, picked, proposed, request, review
from tests.kube.apiserver import ApiServer

PODS = "/api/v1/pods"
CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
FOUR = [gpu(index, mebi=15360) for index in range(4)]
Json = dict[str, Any]


class Call:
    """A question on its way; `lose` is what the server does when nobody took the answer."""

    def __init__(self) -> None:
        self._lost: list[Any] = []

    def on_lost(self, callback: Any) -> None:
        """Remember it."""
        self._lost.append(callback)

    def lose(self) -> None:
        """The answer did not arrive."""
        for callback in self._lost:
            callback()


class Told:
    """What would follow the answers."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def allocated(self, proposal: Proposal, ruling: Allow) -> None:
        """A choice was explained."""
        self.words.append(f"allocated {proposal.key}")

    def denied(self, proposal: Proposal, ruling: Deny) -> None:
        """A refusal."""
        self.words.append(f"denied {proposal.key}")

    def believed_free(self, devices: frozenset[DeviceId]) -> None:
        """Devices to be tainted."""
        self.words.append(f"believed free {len(devices)}")


class Stage:
    """A cluster, an API server, and the hook between them."""

    def __init__(self, rest: Rest, at: Cluster) -> None:
        self.at = at
        self.told = Told()
        self.registry = CollectorRegistry()
        self.term = Term()
        self.term.renewed(1000.0)
        self.term.begin(after=0.0)
        self.hook = CommitHook(
            at,
            term=self.term,
            claims=ClaimWriter(rest),
            strangers=Strangers(rest, at, clock=lambda: 100.0),
            aftermath=self.told,
            metrics=ControllerMetrics(self.registry),
            clock=lambda: 100.0,
        )
        self.call = Call()

    def show(self, free: Json) -> None:
        """The watch shows the claim."""
        self.at.put_claim(convert(ResourceClaim, free), 100.0)

    async def ask(self, free: Json, *results: Json, shown: bool = True) -> Answer:
        """Ask about one commit, after the watch has shown what it rests on."""
        if shown:
            self.show(free)
        question = review(free, proposed(free, *results))
        return await self.hook.review(question, self.call)  # type: ignore[arg-type]


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    """An API server on loopback."""
    async with ApiServer() as running:
        yield running


@pytest.fixture
async def stage(server: ApiServer) -> AsyncIterator[Stage]:
    """A node with four cards to share, and the right to answer."""
    async with server.session() as session:
        yield Stage(Rest(session, policy=ONCE), cluster("compact", a=FOUR))


def owned(name: str, pod: str, *requests: Json) -> Json:
    """A claim that was made for a pod."""
    free = claim(name, *requests)
    owner = {"kind": "Pod", "name": pod, "uid": f"uid-{pod}", "controller": True}
    return free | {"metadata": free["metadata"] | {"ownerReferences": [owner]}}


async def test_a_pod_that_came_past_the_other_webhook_is_met(
    server: ApiServer, stage: Stage
) -> None:
    """It gets our label, and the policies that it asks for."""
    annotations = {names.GPU_POLICY: "spread"}
    metadata = {"name": "p", "namespace": "ns", "uid": "uid-p", "annotations": annotations}
    server.put(PODS, {"metadata": metadata, "spec": {"containers": []}})
    await stage.ask(claim("c0", request(mebi=100)), picked("gpu-0", mebi=100))
    answer = await stage.ask(owned("c1", "p", request(mebi=100)), picked("gpu-0", mebi=100))
    assert isinstance(answer, Allowed)
    assert answer.operations, "spread moves the second share to a card of its own"
    assert server.get(PODS, "p", "ns")["metadata"]["labels"] == {names.POD_LABEL: "true"}
    assert "uid-p" in stage.at.pods


async def test_a_pod_that_was_met_after_its_end_is_forgotten(
    server: ApiServer, stage: Stage
) -> None:
    """The watch told of its end before we had the reply; nothing tells of it again."""
    metadata = {"name": "p", "namespace": "ns", "uid": "uid-p"}
    server.put(PODS, {"metadata": metadata, "spec": {"containers": []}})
    await stage.ask(owned("c", "p", request(mebi=100)), picked("gpu-0", mebi=100))
    stage.at.tidy(existing={ClaimUid("uid-c")}, now=100.0 + TIDY_S - 1)
    assert "uid-p" in stage.at.pods
    stage.at.tidy(existing={ClaimUid("uid-c")}, now=100.0 + TIDY_S)
    assert "uid-p" not in stage.at.pods


async def test_a_pod_that_was_met_and_shown_stays(server: ApiServer, stage: Stage) -> None:
    """What the watch has shown ends with the watch, and is newer than the reply to our write."""
    metadata = {"name": "p", "namespace": "ns", "uid": "uid-p"}
    server.put(PODS, {"metadata": metadata, "spec": {"containers": []}})
    await stage.ask(owned("c", "p", request(mebi=100)), picked("gpu-0", mebi=100))
    met = stage.at.pods["uid-p"]
    shown = msgspec.structs.replace(met, spec=msgspec.structs.replace(met.spec, node_name="a"))
    stage.at.put_pod(shown)
    stage.at.meet_pod(met, 100.0)
    stage.at.tidy(existing=set(), now=1000.0)
    assert stage.at.pods["uid-p"] == shown


@pytest.mark.parametrize("uid", ["", "another"])
async def test_a_pod_that_cannot_be_met_does_not_hold_up_the_answer(
    server: ApiServer, stage: Stage, uid: str
) -> None:
    """It is gone, or another one has its name: the defaults decide."""
    if uid:
        metadata = {"name": "p", "namespace": "ns", "uid": uid}
        server.put(PODS, {"metadata": metadata, "spec": {"containers": []}})
    answer = await stage.ask(owned("c1", "p", request(mebi=100)), picked("gpu-0", mebi=100))
    assert isinstance(answer, Allowed)
    if uid:
        assert "labels" not in server.get(PODS, "p", "ns")["metadata"]


async def test_who_does_not_lead_refuses_and_ends_the_connection(stage: Stage) -> None:
    """Nothing is held; the next question may reach the leader."""
    stage.term.end()
    answer = await stage.ask(claim("c", request(mebi=100)), picked("gpu-0", mebi=100))
    assert isinstance(answer, Denied)
    assert answer.close
    assert "not the leader" in answer.message
    assert stage.at.ledger.outstanding() == 0


async def test_a_version_that_the_watch_has_not_shown_is_waited_for(stage: Stage) -> None:
    """The API server asks a moment before its watch tells."""
    free = claim("c", request(mebi=100))
    asking = asyncio.create_task(stage.ask(free, picked("gpu-0", mebi=100), shown=False))
    await asyncio.sleep(0.01)
    assert not asking.done()
    stage.show(free)
    assert isinstance(await asking, Allowed)
    assert stage.at.ledger.outstanding() == 1


async def test_a_review_that_the_watch_does_not_bear_out_changes_nothing(
    server: ApiServer, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reaches the port may say that a claim is free, or that there is one."""
    monkeypatch.setattr(commit, "SHOWN_WITHIN_S", 0.02)
    pick = picked("gpu-0", mebi=15360)
    stage.show(proposed(owned("taken", "p", request(mebi=15360)), pick))
    before = dict(stage.at.ledger.use())
    forged = owned("taken", "p", request(mebi=15360))
    forged["metadata"]["resourceVersion"] = "999999999"
    for free in (forged, owned("never-made", "p", request(mebi=15360))):
        answer = await stage.ask(free, picked("gpu-1", mebi=15360), shown=False)
        assert isinstance(answer, Denied)
        assert "has not reached" in answer.message
    assert dict(stage.at.ledger.use()) == before
    assert stage.at.ledger.outstanding() == 0
    assert not server.requests


async def test_an_answer_that_nobody_took_is_taken_back(stage: Stage) -> None:
    """Rule 6: what was not written cannot land."""
    await stage.ask(claim("c", request(mebi=100)), picked("gpu-0", mebi=100))
    assert stage.at.ledger.outstanding() == 1
    stage.call.lose()
    assert stage.at.ledger.outstanding() == 0


async def test_what_cannot_be_read_is_refused(stage: Stage) -> None:
    """Fail closed, with the reason."""
    free = claim("c", request(mebi=100))
    free["metadata"]["resourceVersion"] = "later"
    answer = await stage.ask(free, picked("gpu-0", mebi=100), shown=False)
    assert isinstance(answer, Denied)
    assert "resourceVersion 'later'" in answer.message


async def test_a_release_is_none_of_the_hooks_business(stage: Stage) -> None:
    """Only a new allocation is judged."""
    taken = proposed(claim("c", request(mebi=100)), picked("gpu-0", mebi=100))
    question = review(taken, claim("c", request(mebi=100)))
    answer = await stage.hook.review(question, stage.call)  # type: ignore[arg-type]
    assert answer == Allowed()


async def test_a_refused_special_claim_is_marked_and_seen_first(
    server: ApiServer, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 8: the refusal waits until our watch shows the mark."""
    monkeypatch.setattr(commit, "SCHEDULER_LAG_S", 0.0)
    whole = request()
    await stage.ask(
        claim("c0", *[request(f"r{n}") for n in range(4)]),
        *[picked(f"gpu-{n}", name=f"r{n}", mebi=15360) for n in range(4)],
    )
    free = claim("c1", whole, annotations={names.EXTENDED_CLAIM: "true"})
    stored = server.put(CLAIMS, free | {"metadata": free["metadata"] | {"resourceVersion": ""}})
    free["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
    seen = stage.at.ledger.seen

    def seeing(uid: Any) -> int:
        now = server.get(CLAIMS, "c1", "ns")
        if names.FENCE in now["metadata"]["annotations"]:
            stage.told.words.append("seen")
            stage.at.put_claim(convert(ResourceClaim, now), 100.0)
        return seen(uid)

    monkeypatch.setattr(stage.at.ledger, "seen", seeing)
    answer = await stage.ask(free, picked("gpu-0", mebi=15360))
    assert isinstance(answer, Denied)
    assert stage.told.words[-2:] == ["denied ns/c1", "seen"]


async def test_a_question_waits_while_we_take_over(stage: Stage) -> None:
    """A refusal would put its pod off for longer than the take-over lasts."""
    stage.term.end()
    stage.term.renewed(1000.0)
    asking = asyncio.create_task(stage.ask(claim("c", request()), picked("gpu-0")))
    await asyncio.sleep(2 * commit.LOOK_FOR_TERM_S)
    assert not asking.done()
    stage.term.begin(after=0.0)
    assert isinstance(await asking, Allowed)


async def test_a_question_does_not_wait_for_ever(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller's patience ends, and a refusal says why."""
    monkeypatch.setattr(commit, "TAKEN_OVER_WITHIN_S", 0.1)
    stage.term.end()
    stage.term.renewed(1000.0)
    answer = await stage.ask(claim("c", request()), picked("gpu-0"))
    assert isinstance(answer, Denied)
    assert "has just become leader" in answer.message


async def test_what_came_of_a_review_is_counted(stage: Stage) -> None:
    """A choice, refusals for want of devices and of the lease, and what cannot land any more."""
    whole = [picked(f"gpu-{index}") for index in range(4)]
    await stage.ask(claim("c", request(count=4)), *whole)
    await stage.ask(claim("d", request(count=4)), *whole)
    stage.show(claim("f", request(count=4), version=20))
    await stage.ask(claim("f", request(count=4)), *whole, shown=False)
    stage.term.end()
    await stage.ask(claim("e", request(count=4)), *whole)

    def counted(name: str, **labels: str) -> float | None:
        return stage.registry.get_sample_value(name, labels)

    assert counted("quadrant_commit_reviews_total", result="chosen") == 1
    assert counted("quadrant_commit_reviews_total", result="denied") == 2
    assert counted("quadrant_commit_denials_total", reason="nothing-fits") == 1
    assert counted("quadrant_commit_denials_total", reason="not-leading") == 1
    assert counted("quadrant_commit_decision_seconds_count") == 3
    assert counted("quadrant_commit_score_count", policy="compact") == 1
    assert counted("quadrant_rejections_total", axis="gpu", reason="in-use") == 1
    assert counted("quadrant_conflicts_total", what="review") == 1
