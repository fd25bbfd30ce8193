"""What kube-scheduler does with a pod: feasibility, first fit, and the commit that we review.

The commit goes the way of a real one: a status update of the claim on top of the stored version,
put before the decision of `POST /commit` with old and new object, stored as the answer's patch
leaves it. What is stored is what everybody believes from then on.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from driver.allocator.nodes import selects
from driver.allocator.problem import Problem
from driver.allocator.results import with_share_ids
from driver.cli.simulation.apiserver import Raw
from driver.cli.simulation.world import NOW, World
from driver.controller import fit, proposal
from driver.controller.commit import Deny, decide
from driver.controller.needs import Needs, needs
from driver.controller.sentence import told
from driver.model.core import Pod
from driver.model.ids import DeviceId, NodeName
from driver.model.resourceclaim import AllocationResult, ResourceClaim
from driver.policy.registry import NONE
from driver.simulator.patching import patched
from driver.simulator.scheduler import Unplaced, first_fit
from driver.wire import decode
from driver.wire.admission import AdmissionRequest
from driver.wire.encode import builtins

# What keeps a claim from vanishing while it is in use.
_FINALIZER = "resource.kubernetes.io/delete-protection"


class Scheduled(msgspec.Struct, frozen=True):
    """The pod runs: where, with which claims, and why they got what they have."""

    node: NodeName
    claims: tuple[ResourceClaim, ...]
    why: tuple[str, ...] = ()


class NotScheduled(msgspec.Struct, frozen=True):
    """The pod stays pending; `retry`: a second attempt may end otherwise."""

    reason: str
    retry: bool = False


def schedule(world: World, raw: Raw) -> Scheduled | NotScheduled:
    """One attempt to schedule a stored pod without gates, on its nominated node first."""
    pod = decode.convert(Pod, raw)
    wanted = needs(pod, world.cluster)
    if wanted.missing:
        return NotScheduled(f"does not exist yet: {', '.join(wanted.missing)}")
    if pod.spec.node_name:
        return _without_scheduler(pod, wanted)
    placed = first_fit(
        (NodeName(name) for name in world.nodes),
        lambda node: _problem(world, pod, wanted, node),
        nominated=pod.status.nominated_node_name,
    )
    if isinstance(placed, Unplaced):
        return NotScheduled(placed.reason())
    why: list[str] = []
    for claim, allocation in zip(wanted.waiting, placed.allocations, strict=True):
        said = _commit(world, raw, claim, with_share_ids(allocation, world.share_id))
        if isinstance(said, NotScheduled):
            return said
        why += said
    for claim in wanted.allocated:
        _reserve(world, raw, claim)
    return _bind(world, raw, placed.node, tuple(why))


def _without_scheduler(pod: Pod, wanted: Needs) -> Scheduled | NotScheduled:
    """A pod that names its node itself: only the kubelet looks at it."""
    if wanted.waiting:
        return NotScheduled("it sets spec.nodeName, so that no scheduler allocates its claims")
    return Scheduled(NodeName(pod.spec.node_name), wanted.allocated)


def _problem(world: World, pod: Pod, wanted: Needs, name: NodeName) -> Problem | str:
    cluster = world.cluster
    node = cluster.node(name)
    unfit = fit.unfit(fit.demands(pod, wanted.by_devices), node, world.bound.on(name))
    if unfit is not None:
        return unfit.reason
    for claim in wanted.allocated:
        allocation = claim.status.allocation
        selector = allocation.node_selector if allocation is not None else None
        if selector is not None and not selects(selector, node):
            return f"claim {claim.metadata.name} is allocated on another node"
    return Problem(
        node=node,
        claims=wanted.waiting,
        classes=cluster.classes,
        pools=cluster.inventory.pools(node),
        usage=cluster.ledger.use(),
        features=cluster.features,
    )


def _commit(
    world: World, pod: Raw, claim: ResourceClaim, allocation: AllocationResult
) -> list[str] | NotScheduled:
    """Propose an allocation, and store what our hook makes of it."""
    stored = _claim(world, pod, claim)
    consumers = [_consumer(pod)]
    status = {"allocation": builtins(allocation), "reservedFor": consumers}
    proposed = {**stored, "status": status}
    review = AdmissionRequest(
        uid=stored["metadata"]["uid"],
        operation="UPDATE",
        namespace=stored["metadata"]["namespace"],
        name=stored["metadata"]["name"],
        sub_resource="status",
        object=msgspec.Raw(msgspec.json.encode(proposed)),
        old_object=msgspec.Raw(msgspec.json.encode(stored)),
    )
    asked = proposal.read(review)
    if asked is None:
        raise LookupError(f"claim {claim.metadata.name} is allocated already")
    ruling = decide(asked, cluster=world.cluster, now=NOW, share_id=world.share_id)
    if isinstance(ruling, Deny):
        return NotScheduled(ruling.reason, retry=True)
    kept = decode.convert(ResourceClaim, world.api.update(patched(proposed, ruling.patch)))
    results = kept.status.allocation
    devices = [one.device_id() for one in results.devices.results] if results else []
    if ruling.explanation is None:
        return list(_left(world, kept, devices))
    return [told(devices, ruling.explanation)]


def _left(world: World, claim: ResourceClaim, devices: list[DeviceId]) -> Iterator[str]:
    """That devices of ours are the scheduler's own choice, and who wants it so."""
    ours = [f"{one.pool}/{one.device}" for one in devices if one.driver == world.rules.driver]
    policy = world.cluster.policies(claim).gpu
    if ours and policy.value == NONE:
        yield f"{', '.join(ours)} by the scheduler: the GPU policy is none ({policy.where})"


def _claim(world: World, pod: Raw, claim: ResourceClaim) -> Raw:
    """The claim as stored, created first if it is the special one, with its finalizer."""
    if claim.metadata.uid:
        found = world.api.get("ResourceClaim", claim.metadata.namespace, claim.metadata.name)
        stored: dict[str, Any] = found or {}
    else:
        made = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **builtins(claim)}
        stored = world.api.create(made)
        special = {"resourceClaimName": stored["metadata"]["name"]}
        latest = world.pod(pod)
        status = {**latest.get("status", {}), "extendedResourceClaimStatus": special}
        world.api.update({**latest, "status": status})
    metadata = {**stored["metadata"], "finalizers": [_FINALIZER]}
    return world.api.update({**stored, "metadata": metadata})


def _reserve(world: World, pod: Raw, claim: ResourceClaim) -> None:
    """Add the pod to the users of a claim that is allocated already, if it is not among them."""
    stored = world.api.get("ResourceClaim", claim.metadata.namespace, claim.metadata.name)
    if stored is None:
        raise LookupError(f"claim {claim.metadata.name} is not stored")
    consumers = stored["status"].get("reservedFor", [])
    if _consumer(pod) not in consumers:
        status = {**stored["status"], "reservedFor": [*consumers, _consumer(pod)]}
        world.api.update({**stored, "status": status})


def _consumer(pod: Raw) -> dict[str, str]:
    metadata = pod["metadata"]
    return {"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}


def _bind(world: World, pod: Raw, node: NodeName, why: tuple[str, ...]) -> Scheduled:
    latest = world.pod(pod)
    bound = world.api.update({**latest, "spec": {**latest["spec"], "nodeName": node}})
    found = needs(decode.convert(Pod, bound), world.cluster)
    return Scheduled(node, found.allocated, why)
