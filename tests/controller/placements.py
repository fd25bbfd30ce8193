"""Builders for tests of the node axis: pods, nodes, and claims that are theirs."""

from typing import Any

import msgspec

from driver.allocator.allocate import allocate
from driver.allocator.outcome import Allocated
from driver.allocator.problem import Problem
from driver.controller.cluster import Cluster
from driver.controller.commit import Allow
from driver.controller.planner import Plan, Planner
from driver.model import names
from driver.model.core import Node, Pod
from driver.model.deviceclass import DeviceClass
from driver.model.resourceclaim import ResourceClaim
from driver.wire.decode import convert
from driver.wire.encode import builtins
from tests.controller.commits import (
    Json,
    claim,
    cluster,
    commit,
    gpu,
    proposed,
    request,
    slice_of,
)

T4 = [gpu(index, mebi=15360, productName="T4") for index in range(4)]
A10G = [gpu(index, mebi=23028, productName="A10G") for index in range(4)]


def two_by_two() -> Cluster:
    """Four T4 on one node, four A10G on the other."""
    return cluster(t4=T4, a10g=A10G)


def node(name: str, **spec_and_status: Any) -> Node:
    """A node; `labels`, `unschedulable`, `taints` and `allocatable` as the API has them."""
    given = dict(spec_and_status)
    metadata = {"name": name, "labels": given.pop("labels", {})}
    status = {"allocatable": given.pop("allocatable", {})}
    return convert(Node, {"metadata": metadata, "spec": given, "status": status})


def pod(
    name: str,
    *claims: str,
    annotations: dict[str, str] | None = None,
    gated: bool = True,
    status: Json | None = None,
    containers: list[Json] | None = None,
    **spec: Any,
) -> Pod:
    """A pod of ours that uses claims of these names; its UID is its name."""
    gates = [{"name": names.PLACEMENT_GATE}] if gated else []
    entries = [{"name": f"entry-{n}", "resourceClaimName": c} for n, c in enumerate(claims)]
    metadata = {
        "name": name,
        "namespace": "ns",
        "uid": name,
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {names.POD_LABEL: "true"},
        "annotations": annotations or {},
    }
    document = {
        "metadata": metadata,
        "spec": {
            "schedulingGates": gates,
            "resourceClaims": entries,
            "containers": containers or [{"name": "main"}],
            **spec,
        },
        "status": status or {},
    }
    return convert(Pod, document)


def modes(node_policy: str, gpu_policy: str) -> dict[str, str]:
    """The two policies as annotations of a pod."""
    return {names.NODE_POLICY: node_policy, names.GPU_POLICY: gpu_policy}


def add_claim(at: Cluster, name: str, *requests: Json, **more: Any) -> Json:
    """A claim that the watch has shown."""
    made = claim(name, *requests, **more)
    at.put_claim(convert(ResourceClaim, made), now=0.0)
    return made


def add_pod(at: Cluster, name: str, *, mebi: int = 7500, **more: Any) -> Pod:
    """A gated pod with one claim for a share of a card, both seen on the watch."""
    add_claim(at, f"{name}-gpu", request(mebi=mebi))
    made = pod(name, f"{name}-gpu", **more)
    at.put_pod(made)
    return made


def fleet(count: int) -> Cluster:
    """So many nodes of eight cards, which differ in everything but what counts."""
    at = cluster()
    for number in range(count):
        name = f"node-{number:04}"
        cards: list[Any] = [
            gpu(index, nvlinkGroup=f"{name}-{index // 4}", serial=number * 8 + index)
            for index in range(8)
        ]
        at.put_node(node(name))
        at.inventory.put_slice(slice_of(name, cards))
    return at


def extended(at: Cluster, resource: str) -> None:
    """The class gets an extended resource name."""
    (known,) = at.classes.values()
    spec = msgspec.structs.replace(known.spec, extended_resource_name=resource)
    at.put_class(DeviceClass(metadata=known.metadata, spec=spec))


def place(planner: Planner, of: Pod) -> Plan:
    """Plan and enter the plan."""
    plan = planner.plan(of)
    planner.nominate(of, plan)
    return plan


def first_fit(at: Cluster, name: str, node_name: str, *, blind: bool = False) -> list[Json]:
    """What the scheduler picks for a claim on this node; nothing when it does not fit.

    `blind`: it believes everything to be free.
    """
    here = at.node(node_name)
    outcome = allocate(
        Problem(
            node=here,
            claims=(next(one for one in at.claims.values() if one.metadata.name == name),),
            classes=at.classes,
            pools=at.inventory.pools(here),
            usage={} if blind else at.ledger.use(),
            features=at.features,
        )
    )
    if not isinstance(outcome, Allocated):
        return []
    return [
        builtins(result) | ({"shareID": f"share-{name}"} if result.share_id == "" else {})
        for result in outcome.allocations[0].devices.results
    ]


def schedule(at: Cluster, name: str, node_name: str, *, version: int, now: float = 100.0) -> Allow:
    """The scheduler commits a claim with its first fit on this node, and the watch shows it."""
    stored = builtins(next(claim for claim in at.claims.values() if claim.metadata.name == name))
    picked = first_fit(at, name, node_name)
    assert picked, f"{name} does not fit on {node_name}"
    ruling = commit(at, stored, *picked, node=node_name, now=now)
    assert isinstance(ruling, Allow), ruling
    results = [builtins(result) for result in ruling.results]
    landed = proposed(stored, *results, node=node_name)
    landed["metadata"] = landed["metadata"] | {"resourceVersion": str(version)}
    at.put_claim(convert(ResourceClaim, landed), now=now)
    return ruling
