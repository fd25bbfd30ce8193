"""What nominated pods are expected to take, and which nodes a change concerns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.controller.changes import Changes
from driver.controller.cluster import Cluster
from driver.controller.footprint import Footprint
from driver.controller.nominations import SPECIAL, Nomination, Nominations, Together
from driver.controller.occupancy import Occupancy
from driver.model import names
from driver.model.allocation import DeviceUse
from driver.model.core import Pod
from driver.model.ids import DeviceId
from driver.model.quantity import parse
from driver.model.resourceclaim import AllocationResult, ResourceClaim
from driver.wire.decode import convert
from tests.controller.commits import claim, picked, proposed, request
from tests.controller.placements import add_pod, extended, pod, two_by_two

CARD = DeviceId("gpu.quadrant.dev", "a", "gpu-0")


def share(mebi: int) -> AllocationResult:
    """An allocation of one new share, as the allocator leaves it: without a share ID."""
    document = proposed(
        claim("c", request(mebi=mebi)), picked("gpu-0", mebi=mebi) | {"shareID": ""}
    )
    allocation = convert(ResourceClaim, document).status.allocation
    assert allocation is not None
    return allocation


def committed(name: str, *, pod_uid: str = "", special: bool = False) -> ResourceClaim:
    """The claim as it is once it has its device."""
    document = proposed(claim(name, request(mebi=100)), picked("gpu-0", mebi=100))
    document["metadata"] |= {"resourceVersion": "11"}
    if special:
        document["metadata"] |= {
            "annotations": {names.EXTENDED_CLAIM: "true"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": pod_uid}],
        }
    return convert(ResourceClaim, document)


def memory(nominations: Nominations) -> str:
    """How much of the card's memory is promised."""
    use = nominations.use().get(CARD)
    return str(use.consumed["memory"]) if use is not None else "0"


def test_promises_add_up_and_each_counts_as_a_share() -> None:
    """Shares without an ID are told apart by the pod."""
    nominations = Nominations()
    nominations.put(Nomination("p", "a", {"c1": share(100), "c2": share(200)}))
    nominations.put(Nomination("q", "a", {"c3": share(300)}))
    assert memory(nominations) == "600Mi"
    assert len(nominations.use()[CARD].shares) == 3


def test_a_nomination_takes_the_place_of_the_one_before() -> None:
    """Nothing is counted twice, and nothing is left."""
    nominations = Nominations()
    nominations.put(Nomination("p", "a", {"c1": share(100)}))
    nominations.put(Nomination("p", "b", {"c1": share(300)}))
    assert memory(nominations) == "300Mi"
    nominations.drop("p")
    nominations.drop("p")
    assert memory(nominations) == "0"
    assert len(nominations) == 0


def test_a_promise_falls_when_its_claim_is_committed() -> None:
    """Those of the pod's other claims stay, and so does the node."""
    nominations = Nominations()
    nominations.put(Nomination("p", "a", {"uid-c1": share(100), "uid-c2": share(200)}))
    nominations.settle(committed("c1"))
    assert memory(nominations) == "200Mi"
    assert nominations.promised("uid-c1") is None
    assert nominations.promised("uid-c2") is not None
    nominations.settle(committed("c1"))
    left = nominations.get("p")
    assert left is not None
    assert list(left.promised) == ["uid-c2"]


def test_the_special_claim_is_known_by_its_owner() -> None:
    """Its UID was not known when its devices were promised; other pods' promises stay."""
    nominations = Nominations()
    nominations.put(Nomination("p", "a", {SPECIAL: share(100)}))
    nominations.put(Nomination("q", "a", {SPECIAL: share(200)}))
    nominations.settle(committed("p-extended-x", pod_uid="p", special=True))
    assert memory(nominations) == "200Mi"
    nominations.settle(committed("p-extended-y", pod_uid="unknown", special=True))
    assert memory(nominations) == "200Mi"


def test_together_is_the_sum_of_both() -> None:
    """Devices in one of the two, in both, and in none."""
    one, two, three = (DeviceId("d", "p", name) for name in ("1", "2", "3"))
    now = {one: DeviceUse(exclusive=True), two: use("a", "1Gi")}
    soon = {two: use("b", "2Gi"), three: use("c", "3Gi")}
    both = Together(now, soon)
    assert both[one] == DeviceUse(exclusive=True)
    assert both[two] == DeviceUse(shares=frozenset({"a", "b"}), consumed={"memory": parse("3Gi")})
    assert both[three] == use("c", "3Gi")
    assert list(both) == [one, two, three]
    assert len(both) == 3
    assert DeviceId("d", "p", "4") not in both
    with pytest.raises(KeyError):
        both[DeviceId("d", "p", "4")]


def use(share_id: str, memory: str) -> DeviceUse:
    """One share."""
    return DeviceUse(shares=frozenset({share_id}), consumed={"memory": parse(memory)})


def test_a_pod_is_in_one_place() -> None:
    """Both the old and the new node are told of a move, and none of a repetition."""
    touched: list[str] = []
    occupancy = Occupancy(touched.append)
    small, large = Footprint({"cpu": 1}), Footprint({"cpu": 2})
    occupancy.put("p", "a", small)
    occupancy.put("p", "a", small)
    assert touched == ["a"]
    occupancy.put("p", "b", small)
    assert touched == ["a", "a", "b"]
    occupancy.put("q", "b", large)
    assert list(occupancy.on("b")) == [small, large]
    assert not list(occupancy.on("a"))
    occupancy.drop("p")
    occupancy.drop("p")
    assert touched[3:] == ["b", "b"]
    assert occupancy.node_of("q") == "b"
    assert occupancy.node_of("p") is None


@given(st.lists(st.sampled_from(["a", "b", "c", "*"]), max_size=12), st.integers(0, 12))
def test_changes_since_a_version_are_those_after_it(touches: list[str], start: int) -> None:
    """The newest first, each once; None once something changed everywhere."""
    changes = Changes()
    version, after = 0, list[str]()
    for number, node in enumerate(touches):
        if number == start:
            version, after = changes.now, []
        if node == "*":
            changes.touch_all()
        else:
            changes.touch(node)
        after.append(node)
    if start >= len(touches):
        version, after = changes.now, []
    found = changes.since(version)
    if "*" in after:
        assert found is None
    else:
        assert found is not None
        assert list(found) == list(dict.fromkeys(reversed(after)))
    assert all(changes.at(node) <= changes.now for node in "abc")


def nominated(at: Cluster) -> Pod:
    """A pod that is expected on a node with the devices of its claim."""
    made = add_pod(at, "p")
    at.occupancy.put("p", "t4", Footprint({"cpu": 1}))
    at.nominations.put(Nomination("p", "t4", {"uid-p-gpu": share(7500)}))
    return made


def test_a_bound_pod_has_its_place_and_no_nomination() -> None:
    """Its claims are in the ledger, what else it takes of the node still counts."""
    at = two_by_two()
    nominated(at)
    at.put_pod(pod("p", "p-gpu", gated=False, nodeName="a10g"))
    assert at.nominations.get("p") is None
    assert at.occupancy.node_of("p") == "a10g"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", None])
def test_a_pod_that_has_ended_is_expected_nowhere(phase: str | None) -> None:
    """Finished or gone; the node may take others, which is a fact."""
    at = two_by_two()
    nominated(at)
    before = at.facts.now
    if phase is None:
        at.remove_pod("p")
    else:
        at.put_pod(pod("p", "p-gpu", gated=False, status={"phase": phase}))
    assert at.nominations.get("p") is None
    assert at.occupancy.node_of("p") is None
    assert list(at.facts.since(before) or ()) == ["t4"]


def test_only_nodes_that_changed_are_told() -> None:
    """What a kubelet merely confirms, and what is merely expected, is no fact."""
    at = two_by_two()
    node = at.nodes["t4"]
    before, facts = at.changes.now, at.facts.now
    at.put_node(node)
    assert at.changes.now == before
    nominated(at)
    assert set(at.changes.since(before) or ()) == {"t4"}
    assert at.facts.now == facts
    at.remove_node("a10g")
    assert list(at.facts.since(facts) or ()) == ["a10g"]
    extended(at, "nvidia.com/gpu")
    assert at.changes.since(before) is None


def test_a_commit_touches_the_node_of_its_device() -> None:
    """Also a release does."""
    at = two_by_two()
    before = at.facts.now
    free = claim("c", request(mebi=100))
    stored = proposed(free, picked("gpu-0", node="a10g", mebi=100), node="a10g")
    stored["metadata"] = stored["metadata"] | {"resourceVersion": "11"}
    at.put_claim(convert(ResourceClaim, stored), now=0.0)
    assert list(at.facts.since(before) or ()) == ["a10g"]
    before = at.facts.now
    freed = free | {"metadata": free["metadata"] | {"resourceVersion": "12"}}
    at.put_claim(convert(ResourceClaim, freed), now=1.0)
    assert list(at.facts.since(before) or ()) == ["a10g"]
