"""What is said about pods and claims of a cluster: those that have devices, and those that wait."""

from typing import Any

import msgspec
import pytest
from rich.console import Console

from driver.allocator.allocate import BEST_FIT_STEPS, FIRST_FIT_STEPS
from driver.cli.explain import look
from driver.cli.explanation.account import account
from driver.cli.explanation.report import Account
from driver.cli.explanation.subject import SubjectError, parse
from driver.cli.live.listing import ForbiddenError, Listing
from driver.cli.live.view import Rules
from driver.cli.render.explanation import as_text
from driver.cli.usage import UsageError
from driver.controller.policies import Defaults
from driver.kube.rest import Rest
from driver.model import names
from driver.wire.encode import builtins
from tests.cli.listings import held, listing, running, waiting
from tests.controller.commits import DRIVER, gpu, request
from tests.controller.placements import modes, node, pod
from tests.kube.apiserver import ApiServer
from tests.kube.objects import Refusal

RULES = Rules(defaults=Defaults(node="compact", gpu="compact"))
SHARE = request(mebi=7500)
API = "/apis/resource.k8s.io/v1"


def explained(cluster: Listing, text: str) -> Account:
    """The account of an object in namespace ns."""
    return account(cluster, parse(text, "ns"), RULES)


def shown(of: Account) -> str:
    """The account as people see it."""
    console = Console(width=200, highlight=False, color_system=None)
    with console.capture() as captured:
        as_text(of, console)
    return captured.get()


def test_a_pod_that_waits_is_answered_as_the_controller_would() -> None:
    """The best node and device, the terms that add up, the next ones with their distance."""
    first = held("first", SHARE, device="gpu-1", on="t4", mebi=7500)
    found = explained(listing(first, waiting("c", SHARE), pod("p", "c")), "pod/p")
    assert found.state == "pending"
    assert "would get node t4 now" in found.summary
    assert names.PLACEMENT_GATE in found.summary
    assert found.devices is not None
    assert found.devices.chosen is not None
    assert found.devices.chosen.names == ("t4/gpu-1",)
    for axis in (found.node, found.devices):
        assert axis is not None
        assert axis.chosen is not None
        (score,) = axis.chosen.scores
        assert sum(term.points for term in score.terms) == pytest.approx(score.total)
        assert "-0.0" not in {str(term.points) for term in score.terms}
        best = score.total
        for other in axis.runners_up:
            assert other.behind[0] == pytest.approx(best - other.scores[0].total)
            assert other.behind[0] >= 0


def test_what_a_pod_has_is_told_with_todays_scores() -> None:
    """The devices are as stored; another that would be better today is ahead, and said to be."""
    mine = held("c", SHARE, device="gpu-3", on="t4", mebi=7500, user="p")
    later = held("later", SHARE, device="gpu-0", on="t4", mebi=7500)
    found = explained(listing(mine, later, running("p", "c", on="t4")), "pod/p")
    assert found.state == "allocated"
    assert found.summary == "pod ns/p has t4/gpu-3 on node t4."
    assert "anew" in found.basis
    assert found.devices is not None
    assert found.devices.runners_up[0].names == ("t4/gpu-0",)
    assert found.devices.runners_up[0].behind[0] < 0
    assert "ahead, as things are now" in shown(found)


def test_a_claim_is_explained_without_its_own_share() -> None:
    """Its own use is not held against it."""
    mine = held("c", SHARE, device="gpu-0", on="t4", mebi=7500, user="p")
    found = explained(listing(mine, running("p", "c", on="t4")), "claim/c")
    assert found.devices is not None
    assert found.devices.chosen is not None
    assert found.devices.chosen.scores[0].total == pytest.approx(48.83, abs=0.01)


def test_where_nothing_fits_reasons_are_counted_and_remedies_named() -> None:
    """Both cards are taken whole: who has them is what would help."""
    cards = {"a": [gpu(0)], "b": [gpu(0)], "c": [gpu(0)]}
    full = [held(f"on-{n}", request(), device="gpu-0", on=n, user=f"pod-{n}") for n in "ab"]
    cordoned = node("c", unschedulable=True)
    found = explained(
        listing(*full, cordoned, waiting("w", request()), pod("p", "w"), cards=cards), "pod/p"
    )
    assert found.summary == "pod ns/p waits: no node fits."
    assert found.node is not None
    assert [(one.count, one.reason) for one in found.node.rejected] == [
        (2, "in use"),
        (1, "the node is cordoned"),
    ]
    assert found.devices is not None
    assert [(one.count, one.example) for one in found.devices.rejected] == [(2, "a/gpu-0")]
    assert found.would_fit == (
        "end pods on node a that have devices: pod ns/pod-a",
        "uncordon node c",
    )


def test_what_no_node_can_hold_at_all() -> None:
    """Ending pods would not help."""
    found = explained(listing(waiting("w", request(count=9)), pod("p", "w")), "pod/p")
    assert len(found.would_fit) == 1
    assert "even if nothing were in use" in found.would_fit[0]


def test_tie_breakers_and_weights_are_shown() -> None:
    """One score for each of the policies; the weights with who set them."""
    said = modes("compact", "compact,topology") | {names.SCORING_WEIGHTS: "memory=3"}
    found = explained(listing(waiting("c", SHARE), pod("p", "c", annotations=said)), "pod/p")
    assert found.devices is not None
    assert found.devices.chosen is not None
    assert [score.policy for score in found.devices.chosen.scores] == ["compact", "topology"]
    assert found.devices.weights == "memory=3"
    assert f"weights memory=3 (annotation {names.SCORING_WEIGHTS} of pod ns/p)" in shown(found)


def test_a_search_that_stopped_at_its_bound_says_so() -> None:
    """Eight of sixteen cards of which hardly two are linked alike: more sets than steps."""
    unlike = [gpu(index, nvlinkGroup=f"g{index % 5}") for index in range(16)]
    for index, one in enumerate(unlike):
        one["attributes"][names.NUMA_NODE] = {"int": index // 2}
    cards = {"a": unlike}
    found = explained(listing(waiting("c", request(count=8)), pod("p", "c"), cards=cards), "pod/p")
    assert found.devices is not None
    assert found.devices.chosen is not None
    assert found.devices.stopped_after == BEST_FIT_STEPS
    assert f"stopped at its bound of {BEST_FIT_STEPS} steps" in shown(found)


def test_first_fit_that_found_nothing_within_its_bound_says_so() -> None:
    """Not fitting and not knowing are different answers, also at the end of the line."""
    cards = {"a": [gpu(index, group=f"g{index // 2}") for index in range(34)]}
    apart = {"distinctAttribute": f"{DRIVER}/group"}
    asked = waiting("c", request(count=18), constraints=[apart])
    found = explained(listing(asked, pod("p", "c"), cards=cards), "pod/p")
    assert found.devices is not None
    (rejected,) = found.devices.rejected
    assert rejected.reason == f"no set of devices was found within {FIRST_FIT_STEPS} steps"
    assert found.node is not None
    assert [one.reason for one in found.node.rejected] == [rejected.reason]


def test_a_node_policy_of_none_leaves_the_node_open() -> None:
    """All nodes that fit are told, none is chosen."""
    said = modes("none", "compact")
    found = explained(listing(waiting("c", SHARE), pod("p", "c", annotations=said)), "pod/p")
    assert found.node is not None
    assert found.node.chosen is None
    assert [one.names for one in found.node.runners_up] == [("a10g",), ("t4",)]
    node_axis = shown(found).partition("NODE by none")[2].partition("DEVICES")[0]
    assert "nothing is scored: the choice is left to the scheduler" in node_axis


def test_nominated_pods_count() -> None:
    """What another pod is expected to take is not offered twice."""
    cards = {"a": [gpu(0)]}
    other = pod("first", "f", gated=False, status={"nominatedNodeName": "a"})
    found = explained(
        listing(
            other, waiting("f", request()), waiting("c", request()), pod("p", "c"), cards=cards
        ),
        "pod/p",
    )
    assert found.summary == "pod ns/p waits: no node fits."


@pytest.mark.parametrize(
    ("objects", "text", "says"),
    [
        ((pod("p", "gone"),), "pod/p", "waits for what does not exist yet: claim gone"),
        ((pod("p"),), "pod/p", "has no claims"),
        ((waiting("c", SHARE),), "claim/c", "no pod uses it. For a pod that asks for nothing else"),
        (
            (waiting("c", SHARE), pod("p", "c", schedulingGates=[{"name": "other"}])),
            "claim/c",
            "waits for scheduling gate other",
        ),
    ],
)
def test_other_states(objects: tuple[Any, ...], text: str, says: str) -> None:
    """What there is to say where nothing is to be compared."""
    assert says in explained(listing(*objects), text).summary


@pytest.mark.parametrize("text", ["p", "pod/", "node/a", "pod/a/b", "pod/nobody", "claim/nobody"])
def test_what_cannot_be_found_or_read(text: str) -> None:
    """The sentence says what was expected."""
    with pytest.raises((UsageError, SubjectError), match=r"expected pod/NAME|there is no"):
        explained(listing(), text)


def serve(server: ApiServer, cluster: Listing) -> None:
    """Put a listing into a server."""
    for path, objects in (
        ("/api/v1/nodes", cluster.nodes),
        ("/api/v1/namespaces", cluster.namespaces),
        ("/api/v1/pods", cluster.pods),
        (f"{API}/resourceslices", cluster.slices),
        (f"{API}/deviceclasses", cluster.classes),
        (f"{API}/resourceclaims", cluster.claims),
    ):
        for one in objects:
            server.put(path, builtins(one))
    resources = [{"name": "resourceclaims"}, {"name": "resourceslices"}]
    server.documents["/version"] = {"gitVersion": "v1.37.2"}
    server.documents[API] = {"resources": resources}


async def test_a_cluster_is_read_once_and_nothing_is_written() -> None:
    """One list a kind; events of the subject are what is recorded; nothing is stored."""
    async with ApiServer() as server, server.session() as session:
        serve(server, listing(waiting("c", SHARE), pod("p", "c")))
        stored = server.get("/api/v1/pods", "p", "ns")
        server.put(
            "/api/v1/events",
            {
                "metadata": {"name": "e", "namespace": "ns"},
                "involvedObject": {"uid": stored["metadata"]["uid"]},
                "reason": "NoNodeFits",
                "message": "no node fits",
                "eventTime": "2026-01-01T00:00:00.000000Z",
            },
        )
        before = server.objects.version
        found = await look(Rest(session), parse("pod/p", "ns"), RULES)
        assert server.objects.version == before
    assert [(one.about, one.note) for one in found.recorded] == [("pod p", "no node fits")]
    assert found.node is not None


async def test_a_right_that_is_missing_is_named() -> None:
    """The sentence says which kind cannot be listed."""
    async with ApiServer() as server, server.session() as session:
        serve(server, listing())
        server.refuse(Refusal(403, "Forbidden", "no"), path="/api/v1/nodes")
        with pytest.raises(ForbiddenError, match="nodes cannot be listed"):
            await look(Rest(session), parse("pod/p", "ns"), RULES)


def test_the_json_is_an_interface() -> None:
    """Version and names that readers rely on; a change of these needs another apiVersion."""
    document = msgspec.to_builtins(explained(listing(waiting("c", SHARE), pod("p", "c")), "pod/p"))
    assert (document["apiVersion"], document["kind"]) == ("quadrant.dev/v1alpha1", "Explanation")
    assert list(document) == [
        "apiVersion", "kind", "subject", "state", "summary", "basis",
        "node", "devices", "wouldFit", "recorded", "warnings",
    ]  # fmt: skip
    assert list(document["node"]) == [
        "policy", "policyFrom", "weights", "weightsFrom", "chosen", "runnersUp", "rejected",
        "stoppedAfter",
    ]  # fmt: skip
    assert list(document["node"]["chosen"]) == ["names", "scores", "behind"]
