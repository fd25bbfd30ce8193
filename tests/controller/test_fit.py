"""Whether a pod plainly cannot run on a node, apart from devices."""

from typing import Any

import pytest

from driver.controller.fit import demands, unfit
from driver.controller.footprint import Footprint, footprint
from driver.model.core import Pod
from driver.model.quantity import NANO
from tests.controller.placements import node, pod

GIB = 1024**3


def requests(name: str = "main", **amounts: str) -> dict[str, Any]:
    """A container that requests these amounts."""
    return {"name": name, "resources": {"requests": amounts}}


def reason(wanted: Pod, on: Any, *others: Footprint, by_devices: tuple[str, ...] = ()) -> str:
    """Why the pod cannot run there; empty when it may."""
    why = unfit(demands(wanted, by_devices), on, others)
    return why.reason if why is not None else ""


TAINT = {"key": "team", "value": "red", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("taint", "toleration", "runs"),
    [
        (TAINT, None, False),
        (TAINT, {"key": "team", "operator": "Equal", "value": "red"}, True),
        (TAINT, {"key": "team", "value": "red", "effect": "NoSchedule"}, True),
        (TAINT, {"key": "team", "value": "blue"}, False),
        (TAINT, {"key": "team", "operator": "Exists", "effect": "NoExecute"}, False),
        (TAINT, {"key": "other", "operator": "Exists"}, False),
        (TAINT, {"operator": "Exists"}, True),
        (TAINT | {"effect": "NoExecute"}, None, False),
        (TAINT | {"effect": "PreferNoSchedule"}, None, True),
        # Alpha operators: only the scheduler knows how it compares.
        (TAINT, {"key": "team", "operator": "Gt", "value": "5"}, True),
    ],
)
def test_a_hard_taint_keeps_away_who_does_not_tolerate_it(
    taint: dict[str, str], toleration: dict[str, str] | None, runs: bool
) -> None:
    """Taints count by effect, and tolerations by key, operator, value and effect."""
    wanted = pod("p", tolerations=[toleration] if toleration else [])
    assert (reason(wanted, node("n", taints=[taint])) == "") == runs


def test_a_cordoned_node_takes_only_pods_that_tolerate_that() -> None:
    """DaemonSet pods carry that toleration; others are told to uncordon the node."""
    cordoned = node("n", unschedulable=True)
    why = unfit(demands(pod("p")), cordoned, ())
    assert why is not None
    assert why.reason == "the node is cordoned"
    assert why.remedy == "uncordon node n"
    tolerant = pod(
        "p", tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
    )
    assert reason(tolerant, cordoned) == ""


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    """A required node affinity with these terms."""
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def label(key: str, operator: str, *values: str) -> dict[str, Any]:
    """A term with one condition on a label."""
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("term", "runs"),
    [
        (label("zone", "In", "a", "b"), True),
        (label("zone", "In", "c"), False),
        (label("zone", "NotIn", "a"), False),
        (label("rack", "NotIn", "a"), True),
        (label("zone", "Exists"), True),
        (label("rack", "Exists"), False),
        (label("rack", "DoesNotExist"), True),
        (label("size", "Gt", "7"), True),
        (label("size", "Gt", "8"), False),
        (label("size", "Lt", "9"), True),
        (label("zone", "Lt", "9"), False),
        # What a newer Kubernetes may add is for the scheduler to say.
        (label("zone", "Like", "a*"), True),
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}, True),
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["m"]}]}, False),
        ({}, False),
    ],
)
def test_the_required_affinity_decides(term: dict[str, Any], runs: bool) -> None:
    """All operators, labels and fields; a term without conditions selects nothing."""
    on = node("n", labels={"zone": "a", "size": "8"})
    assert (reason(pod("p", affinity=affinity(term)), on) == "") == runs


def test_terms_are_alternatives() -> None:
    """One term that holds is enough."""
    either = affinity(label("zone", "In", "c"), label("zone", "In", "a"))
    assert reason(pod("p", affinity=either), node("n", labels={"zone": "a"})) == ""


def test_the_node_selector_wants_every_label() -> None:
    """The first label that is not there is named."""
    wanted = pod("p", nodeSelector={"zone": "a", "disk": "ssd"})
    assert reason(wanted, node("n", labels={"zone": "a"})) == (
        "the pod's nodeSelector wants label disk=ssd"
    )
    assert reason(wanted, node("n", labels={"zone": "a", "disk": "ssd"})) == ""


ROOM = {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "10Gi", "pods": "3", "vendor/nic": "1"}


@pytest.mark.parametrize(
    ("amounts", "lacking"),
    [
        ({"cpu": "4", "memory": "8Gi"}, ""),
        ({"cpu": "4001m"}, "too little cpu is left"),
        ({"memory": "9Gi"}, "too little memory is left"),
        ({"ephemeral-storage": "11Gi"}, "too little ephemeral-storage is left"),
        ({"vendor/nic": "2"}, "too little vendor/nic is left"),
        ({"vendor/other": "1"}, "the node has no vendor/other"),
        ({"vendor/other": "0"}, ""),
    ],
)
def test_resources_must_be_left(amounts: dict[str, str], lacking: str) -> None:
    """Every plain resource counts, also those that the node does not have at all."""
    wanted = pod("p", containers=[requests(**amounts)])
    assert reason(wanted, node("n", allocatable=ROOM)) == lacking


def test_pods_on_the_node_have_their_part() -> None:
    """What others take is gone; the remedy says how much is missing."""
    other = footprint(pod("o", containers=[requests(cpu="3")]))
    why = unfit(
        demands(pod("p", containers=[requests(cpu="1500m")])), node("n", allocatable=ROOM), [other]
    )
    assert why is not None
    assert why.remedy == "free 500m of cpu on node n"


def test_a_node_runs_only_so_many_pods() -> None:
    """The fourth pod of three is one too many."""
    others = [footprint(pod(f"o{n}")) for n in range(3)]
    assert reason(pod("p"), node("n", allocatable=ROOM), *others) == (
        "the node has as many pods as it may run"
    )


def test_a_node_that_says_nothing_of_itself_is_not_judged() -> None:
    """Slices may come before the kubelet's first status."""
    assert reason(pod("p", containers=[requests(cpu="100")]), node("n")) == ""


@pytest.mark.parametrize(("plugin", "expected"), [("0", ""), ("8", "a device plugin gives x/gpu")])
def test_a_resource_that_devices_serve_is_not_looked_for_on_the_node(
    plugin: str, expected: str
) -> None:
    """Unless a device plugin gives it there: then no device is chosen on that node."""
    wanted = pod("p", containers=[requests(**{"x/gpu": "1"})])
    on = node("n", allocatable=ROOM | {"x/gpu": plugin})
    assert reason(wanted, on, by_devices=("x/gpu",)).startswith(expected)
    assert bool(reason(wanted, on, by_devices=("x/gpu",))) == bool(expected)


def with_port(port: int, protocol: str = "TCP", address: str = "") -> Pod:
    """A pod that wants one port of its host."""
    ports = [{"hostPort": port, "protocol": protocol, "hostIP": address}]
    return pod("p", containers=[{"name": "main", "ports": ports}])


@pytest.mark.parametrize(
    ("mine", "other", "runs"),
    [
        (with_port(80), with_port(80), False),
        (with_port(80), with_port(81), True),
        (with_port(80), with_port(80, "UDP"), True),
        (with_port(80, address="10.0.0.1"), with_port(80, address="10.0.0.2"), True),
        (with_port(80, address="10.0.0.1"), with_port(80), False),
        (with_port(0), with_port(0), True),
    ],
)
def test_a_host_port_can_be_held_once(mine: Pod, other: Pod, runs: bool) -> None:
    """Address, protocol and number together; no address stands for all of them."""
    assert (reason(mine, node("n"), footprint(other)) == "") == runs


def test_init_containers_need_no_more_than_the_most_at_one_time() -> None:
    """A sidecar runs on beside all that start after it."""
    wanted = pod(
        "p",
        containers=[requests("a", cpu="1", memory="1Gi"), requests("b", cpu="1")],
        initContainers=[
            requests("first", cpu="5"),
            requests("sidecar", cpu="2") | {"restartPolicy": "Always"},
            requests("second", cpu="2", memory="3Gi"),
        ],
        overhead={"cpu": "250m"},
    )
    assert footprint(wanted).resources == {
        "cpu": 5 * NANO + NANO // 4,
        "memory": 3 * GIB * NANO,
        "pods": NANO,
    }


def test_the_pod_as_a_whole_goes_before_its_containers() -> None:
    """Pod-level requests replace the sum; limits stand for requests that are left out."""
    wanted = pod(
        "p",
        containers=[requests(cpu="1"), {"name": "b", "resources": {"limits": {"memory": "1Gi"}}}],
        resources={"requests": {"cpu": "3"}},
    )
    assert footprint(wanted).resources == {
        "cpu": 3 * NANO,
        "memory": GIB * NANO,
        "pods": NANO,
    }
