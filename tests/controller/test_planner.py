"""Which node is the best for a pod, why, and how little it takes to say so."""

import pytest

from driver.controller.cluster import Cluster
from driver.controller.nominations import SPECIAL
from driver.controller.planner import Plan, Planner
from driver.controller.policies import UnknownPolicyError
from driver.controller.sentence import node_told, nowhere_told
from driver.model import names
from driver.model.allocation import RejectionKind
from driver.model.api import ObjectMeta
from driver.model.ids import ObjectKey
from driver.model.resourceclaim import ResourceClaim
from driver.wire.decode import convert
from tests.controller.commits import Json, claim, cluster, gpu, picked, proposed, request, slice_of
from tests.controller.placements import (
    add_claim,
    add_pod,
    extended,
    fleet,
    modes,
    node,
    place,
    pod,
    schedule,
    two_by_two,
)

EIGHT = [gpu(index, numa=index // 4) for index in range(8)]


def devices(plan: Plan) -> list[str]:
    """The devices that a plan expects, as node/device."""
    return [
        f"{result.pool}/{result.device}"
        for allocation in plan.allocations.values()
        for result in allocation.devices.results
    ]


@pytest.mark.parametrize(
    ("node_policy", "gpu_policy", "per_node", "gpus"),
    [
        ("compact", "compact", [4], 2),
        ("spread", "compact", [2, 2], 2),
        ("compact", "spread", [4], 4),
        ("spread", "spread", [2, 2], 4),
        ("binpack", "binpack", [4], 2),
    ],
)
@pytest.mark.parametrize("late", [False, True])
def test_the_two_by_two(
    node_policy: str, gpu_policy: str, per_node: list[int], gpus: int, *, late: bool
) -> None:
    """Node axis and GPU axis together: what is planned is what is committed.

    Also when all pods are planned before the first claim is committed.
    """
    at = two_by_two()
    planner = Planner(at)
    placed: list[tuple[str, Plan]] = []
    committed: list[str] = []
    for number in range(4):
        made = add_pod(at, f"p{number}", annotations=modes(node_policy, gpu_policy))
        placed.append((f"p{number}", place(planner, made)))
        if not late:
            committed += settle(at, placed.pop(), number)
    for number, waiting in enumerate(placed):
        committed += settle(at, waiting, number)
    nodes = [device.partition("/")[0] for device in committed]
    assert sorted(nodes.count(name) for name in set(nodes)) == per_node
    assert len(set(committed)) == gpus
    assert not at.nominations.use()


def settle(at: Cluster, waiting: tuple[str, Plan], number: int) -> list[str]:
    """The scheduler takes the nominated node and binds the pod; the devices that it ends with."""
    name, plan = waiting
    assert plan.node is not None
    # The policies of a claim made from a template are the pod's: /pods puts them on the template.
    free = at.claims[ObjectKey("ns", f"{name}-gpu")]
    at.claims[ObjectKey("ns", f"{name}-gpu")] = annotated(free, at.pods[name].metadata)
    ruling = schedule(at, f"{name}-gpu", plan.node, version=20 + number)
    at.put_pod(pod(name, f"{name}-gpu", gated=False, nodeName=plan.node))
    chosen = [f"{result.pool}/{result.device}" for result in ruling.results]
    assert chosen == devices(plan)
    return chosen


def annotated(free: ResourceClaim, like: ObjectMeta) -> ResourceClaim:
    """The claim with the annotations of something else."""
    metadata = convert(
        ObjectMeta,
        {
            "name": free.metadata.name,
            "namespace": free.metadata.namespace,
            "uid": free.metadata.uid,
            "resourceVersion": free.metadata.resource_version,
            "annotations": like.annotations,
        },
    )
    return ResourceClaim(metadata=metadata, spec=free.spec)


def test_the_plan_says_what_it_rests_on() -> None:
    """Policy and where it was set, score in terms, the node that came next."""
    at = two_by_two()
    plan = Planner(at).plan(add_pod(at, "p", annotations=modes("compact", "spread")))
    assert plan.node == "t4"
    assert plan.policy is not None
    assert plan.policy.where == f"annotation {names.NODE_POLICY} of pod ns/p"
    assert plan.score.total == pytest.approx(sum(term.points for term in plan.score.terms))
    assert [runner.node for runner in plan.runners_up] == ["a10g"]
    assert plan.runners_up[0].score.total < plan.score.total
    assert plan.devices.policy == "spread"
    assert node_told(plan).startswith("node t4 by compact, score ")


def test_ties_end_on_the_name_of_the_node() -> None:
    """Equal nodes, in whatever order they were seen."""
    at = cluster(c=EIGHT, a=EIGHT, b=EIGHT)
    add_claim(at, "c1", request())
    assert Planner(at).plan(pod("p", "c1")).node == "a"


def test_a_first_fit_on_the_gpu_axis_leaves_the_node_axis_alone() -> None:
    """Policy none means the scheduler's own devices, on the best node."""
    at = two_by_two()
    plan = Planner(at).plan(add_pod(at, "p", annotations=modes("spread", "none")))
    assert devices(plan) == ["a10g/gpu-0"]


def test_policy_none_on_the_node_axis_nominates_nothing() -> None:
    """And says who set it."""
    at = two_by_two()
    plan = Planner(at).plan(add_pod(at, "p", annotations=modes("none", "compact")))
    assert (plan.node, plan.fits_nowhere) == (None, False)
    assert plan.why == f"the node policy is none (annotation {names.NODE_POLICY} of pod ns/p)"


def test_hamis_annotation_is_honoured() -> None:
    """Under its own name, and only where ours says nothing."""
    at = two_by_two()
    planner = Planner(at)
    hami = {names.HAMI_NODE_POLICY: "spread"}
    assert planner.plan(add_pod(at, "p", annotations=hami)).node == "a10g"
    both = hami | {names.NODE_POLICY: "compact"}
    assert planner.plan(add_pod(at, "q", annotations=both)).node == "t4"


def test_an_unknown_policy_is_an_error() -> None:
    """The namespace's annotation is not checked at admission."""
    at = two_by_two()
    at.namespaces["ns"] = ObjectMeta(name="ns", annotations={names.NODE_POLICY: "best"})
    with pytest.raises(UnknownPolicyError, match="namespace ns: node policy 'best' is not known"):
        Planner(at).plan(add_pod(at, "p"))


def test_missing_claims_are_waited_for() -> None:
    """Nothing can be said of the pod before."""
    plan = Planner(two_by_two()).plan(pod("p", "later"))
    assert (plan.node, plan.missing, plan.fits_nowhere) == (None, ("claim later",), False)


def test_a_pod_without_anything_to_allocate_is_left_alone() -> None:
    """Its claims are allocated already, and bind it to a node by themselves."""
    at = two_by_two()
    add_pod(at, "p")
    schedule(at, "p-gpu", "a10g", version=20)
    assert Planner(at).plan(at.pods["p"]).why == "no devices are to be chosen for it"


def test_devices_of_other_drivers_are_not_ours_to_place() -> None:
    """Without a device of ours all nodes are equal, and the first one would get them all."""
    at = cluster(a=[], b=[])
    at.inventory.put_slice(slice_of("a", [gpu(0)], driver="nic.example.com"))
    (known,) = at.classes.values()
    at.put_class(convert(type(known), {"metadata": {"name": known.metadata.name}}))
    add_claim(at, "c1", request())
    plan = Planner(at).plan(pod("p", "c1"))
    assert (plan.node, plan.why) == (None, "none of its devices are ours to choose")


def test_two_claims_of_a_pod_go_to_one_node_together() -> None:
    """Each alone would fit on either node."""
    at = cluster(a=[gpu(0)], b=[gpu(0), gpu(1)])
    add_claim(at, "c1", request())
    add_claim(at, "c2", request())
    plan = Planner(at).plan(pod("p", "c1", "c2"))
    assert plan.node == "b"
    assert sorted(devices(plan)) == ["b/gpu-0", "b/gpu-1"]
    assert sorted(plan.allocations) == ["uid-c1", "uid-c2"]


def test_an_allocated_claim_binds_the_other_to_its_node() -> None:
    """The best node is of no use where the other claim cannot be used."""
    at = cluster(a=[gpu(0), gpu(1)], b=[gpu(0), gpu(1)])
    add_claim(at, "c1", request())
    add_claim(at, "c2", request())
    schedule(at, "c1", "b", version=20)
    plan = Planner(at).explain(pod("p", "c1", "c2"))
    assert (plan.node, devices(plan)) == ("b", ["b/gpu-1"])
    assert [item.reason for item in plan.rejections] == [
        "another claim of the pod can only be used on other nodes"
    ]


def test_a_shared_claim_goes_where_it_was_promised_devices() -> None:
    """The second pod takes no more devices, and cannot go elsewhere."""
    at = cluster(a=[gpu(0)], b=[gpu(0), gpu(1)])
    planner = Planner(at)
    add_claim(at, "shared", request())
    add_claim(at, "own", request())
    assert place(planner, pod("p", "shared")).node == "a"
    plan = place(planner, pod("q", "shared"))
    assert (plan.node, devices(plan)) == ("a", [])
    assert planner.plan(pod("r", "shared", "own")).fits_nowhere


def test_an_extended_resource_is_placed_too() -> None:
    """Its claim has no UID yet, and what it will get is expected all the same."""
    at = cluster(a=[gpu(0)], b=[gpu(0), gpu(1)])
    extended(at, "nvidia.com/gpu")
    planner = Planner(at)
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    plans = [place(planner, pod(name, containers=[container])) for name in ("p", "q", "r", "s")]
    assert [plan.node for plan in plans] == ["a", "b", "b", None]
    assert list(plans[0].allocations) == [SPECIAL]
    assert plans[3].fits_nowhere


def test_nodes_that_cannot_run_the_pod_are_out() -> None:
    """With a reason, one of them, and what would help where only that is in the way."""
    at = cluster(a=[gpu(0)], b=[gpu(0)], c=[gpu(0)])
    at.put_node(node("a", unschedulable=True))
    at.put_node(node("b", unschedulable=True))
    at.put_node(node("c", taints=[{"key": "own", "effect": "NoSchedule"}]))
    add_claim(at, "c1", request())
    add_claim(at, "held", request())
    schedule(at, "held", "a", version=20)
    plan = Planner(at).plan(pod("p", "c1"))
    assert (plan.node, plan.fits_nowhere) == (None, True)
    cordoned, tainted = plan.rejections
    # Node a has no device left: uncordoning it would not help.
    assert (cordoned.count, cordoned.example, cordoned.remedy) == (2, "b", "uncordon node b")
    assert tainted.reason.startswith("the node has taint own:NoSchedule")
    assert cordoned.kinds == tainted.kinds == (RejectionKind.NODE_TAINT,)
    assert "uncordon node b" in nowhere_told(plan)


def test_where_two_things_are_in_the_way_both_are_said() -> None:
    """Too little CPU on a node whose device is held: neither alone would help."""
    at = cluster(a=[gpu(0)])
    at.put_node(node("a", allocatable={"cpu": "4", "memory": "8Gi", "pods": "10"}))
    add_claim(at, "held", request())
    schedule(at, "held", "a", version=20)
    add_claim(at, "c1", request())

    def wants(cpu: int) -> list[Json]:
        return [{"name": "main", "resources": {"requests": {"cpu": str(cpu)}}}]

    at.put_pod(pod("runs", containers=wants(3), gated=False, nodeName="a"))
    (rejected,) = Planner(at).plan(pod("p", "c1", containers=wants(3))).rejections
    assert rejected.remedy == "free 2 of cpu on node a, and end pods on node a that have devices"
    (rejected,) = Planner(at).plan(pod("q", "c1", containers=wants(5))).rejections
    # Freeing cannot help on this node.
    assert rejected.remedy == ""


def test_where_only_use_is_in_the_way_that_is_said() -> None:
    """A node that could hold the claim when empty is named; one that never could is not."""
    at = cluster(a=[gpu(0, mebi=1000)], b=[gpu(0, mebi=100)])
    add_claim(at, "held", request(mebi=900))
    schedule(at, "held", "a", version=20)
    plan = Planner(at).plan(add_pod(at, "p", mebi=500))
    assert {item.example: item.remedy for item in plan.rejections} == {
        "a": "end pods on node a that have devices",
        "b": "",
    }


def test_pods_that_are_expected_take_of_the_nodes_other_resources() -> None:
    """A nomination counts for CPU as for devices; when it is withdrawn there is room again."""
    at = cluster(a=EIGHT, b=EIGHT)
    for name in "ab":
        at.put_node(node(name, allocatable={"cpu": "4", "pods": "10"}))
    planner = Planner(at)
    container = {"name": "main", "resources": {"requests": {"cpu": "3"}}}
    pods = []
    for number in range(3):
        add_claim(at, f"c{number}", request())
        pods.append(pod(f"p{number}", f"c{number}", containers=[container]))
    assert [place(planner, one).node for one in pods] == ["a", "b", None]
    planner.withdraw("p0")
    assert planner.plan(pods[2]).node == "a"


def test_staying_is_possible_while_it_fits() -> None:
    """Asked without the pod's own nomination; another pod may have taken the place."""
    at = cluster(a=[gpu(0)], b=[gpu(0)])
    planner = Planner(at)
    for name in ("c1", "c2"):
        add_claim(at, name, request())
    mine = pod("p", "c1")
    assert planner.stays(mine, "b") is not None
    place(planner, mine)
    planner.withdraw("p")
    schedule(at, "c2", "a", version=20)
    assert planner.stays(mine, "a") is None
    assert planner.stays(mine, "gone") is None
    stays = planner.stays(mine, "b")
    assert stays is not None
    assert devices(stays) == ["b/gpu-0"]


# What makes nodes equal


def test_constraints_are_part_of_what_makes_nodes_equal() -> None:
    """Two nodes whose cards are linked otherwise are different for a claim about links."""
    linked = [gpu(index, nvlinkGroup=f"g{index // 2}") for index in range(4)]
    apart = [gpu(index, nvlinkGroup=f"g{index}") for index in range(4)]
    at = cluster(apart=apart, linked=linked)
    constraint = {"matchAttribute": "gpu.quadrant.dev/nvlinkGroup"}
    add_claim(at, "c1", request(count=2), constraints=[constraint])
    plan = Planner(at).plan(pod("p", "c1"))
    assert plan.node == "linked"
    assert len({device[-1] for device in devices(plan)}) == 2


def test_cards_that_a_request_tells_apart_make_nodes_differ() -> None:
    """A selector may read what is different on every node."""
    at = fleet(5)
    mine: Json = {
        "selectors": [{"cel": {"expression": "device.attributes['gpu.quadrant.dev'].serial == 25"}}]
    }
    add_claim(at, "c1", request(**mine))
    planner = Planner(at)
    asked = pod("p", "c1")
    assert devices(planner.plan(asked)) == ["node-0003/gpu-1"]
    verdicts = planner.verdicts(asked)
    assert verdicts is not None
    assert verdicts.evaluations == 2


def test_what_others_hold_outside_our_word_counts() -> None:
    """A claim that the watch shows committed on a node makes it fuller for the next plan."""
    at = cluster(a=[gpu(0)], b=[gpu(0)])
    planner = Planner(at)
    add_claim(at, "c1", request())
    assert planner.plan(pod("p", "c1")).node == "a"
    stored = proposed(claim("other", request()), picked("gpu-0"))
    stored["metadata"] = stored["metadata"] | {"resourceVersion": "30"}
    at.put_claim(convert(ResourceClaim, stored), now=0.0)
    assert planner.plan(pod("p", "c1")).node == "b"


def test_taints_are_part_of_what_makes_nodes_equal() -> None:
    """Of two nodes that differ in nothing else, the one whose card is tainted is out."""
    broken = gpu(0) | {"taints": [{"key": "broken", "effect": "NoSchedule"}]}
    at = cluster(a=[broken], b=[gpu(0)])
    add_claim(at, "c1", request())
    assert Planner(at).plan(pod("p", "c1")).node == "b"


def test_the_number_of_shares_is_part_of_what_makes_nodes_equal() -> None:
    """As much of the card is in use on both nodes, by more pods on the second."""
    at = cluster(a=[gpu(0, mebi=1000)], b=[gpu(0, mebi=1000)])
    for number, (name, mebi) in enumerate((("a", 400), ("b", 200), ("b", 200))):
        add_claim(at, f"held-{number}", request(mebi=mebi))
        schedule(at, f"held-{number}", name, version=20 + number)
    assert Planner(at).plan(add_pod(at, "p", mebi=100)).node == "b"


def test_a_slice_that_changes_brings_its_node_back() -> None:
    """The planner was asked before, and is asked again."""
    at = cluster(a=[gpu(0)], b=[gpu(0)])
    planner = Planner(at)
    add_claim(at, "c1", request())
    assert planner.plan(pod("p", "c1")).node == "a"
    at.inventory.put_slice(slice_of("a", []))
    assert planner.plan(pod("p", "c1")).node == "b"
