"""The cluster's claims on our devices: what they asked for, what they have, since when.

Scores are not stored in a cluster. Who knows one says so in `Told`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from driver.allocator.device import PooledDevice
from driver.allocator.inventory import Inventory
from driver.cli.fleet import links
from driver.cli.fleet.cards import is_instance, profile, text
from driver.cli.fleet.report import MIB, Claim, Given
from driver.controller import extended
from driver.controller.policies import class_names
from driver.model import names
from driver.model.deviceclass import DeviceClass
from driver.model.resourceclaim import DeviceRequestAllocationResult, ResourceClaim
from driver.simulator.cards import index_of

_NODE_FIELD = "metadata.name"


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a claim besides the claim: its policies, NODE/GPU, and its score."""

    policy: str = ""
    score: float | None = None


Tell = Callable[[ResourceClaim], Told]


def is_ours(claim: ResourceClaim, driver: str, classes: Mapping[str, DeviceClass]) -> bool:
    """Whether it has devices of the driver, or asks for a class that may have some.

    Of a class that is not known, nobody can say that it has none.
    """
    allocation = claim.status.allocation
    if allocation is not None:
        return any(result.driver == driver for result in allocation.devices.results)
    asked = [classes.get(name) for name in class_names(claim)]
    return any(found is None or extended.is_ours(found, driver) for found in asked)


def row(claim: ResourceClaim, inventory: Inventory, driver: str, tell: Tell) -> Claim:
    """One claim."""
    allocation = claim.status.allocation
    results = [
        result
        for result in (allocation.devices.results if allocation is not None else ())
        if result.driver == driver
    ]
    devices = [inventory.find(result.device_id()) for result in results]
    published = [device for device in devices if device is not None]
    told = tell(claim)
    return Claim(
        namespace=claim.metadata.namespace,
        name=claim.metadata.name,
        classes=tuple(class_names(claim)),
        state=state(claim),
        node=_node(claim, published),
        devices=tuple(map(_given, results, devices)),
        link=_link(published),
        score=told.score,
        policy=told.policy,
        pod=_pod(claim),
        created=claim.metadata.creation_timestamp or "",
    )


def state(claim: ResourceClaim) -> str:
    """The state in the words of `kubectl get resourceclaims`."""
    parts = []
    if claim.metadata.deletion_timestamp is not None:
        parts.append("deleted")
    if claim.status.allocation is None:
        return ",".join(parts) or "pending"
    parts.append("allocated")
    return ",".join([*parts, "reserved"] if claim.status.reserved_for else parts)


def _node(claim: ResourceClaim, devices: list[PooledDevice]) -> str:
    """Where it can be used: the node of its devices, else the one that it is bound to."""
    for device in devices:
        if device.slice.spec.node_name:
            return device.slice.spec.node_name
    allocation = claim.status.allocation
    selector = allocation.node_selector if allocation is not None else None
    for term in selector.node_selector_terms if selector is not None else ():
        for field in term.match_fields:
            if field.key == _NODE_FIELD and len(field.values) == 1:
                return field.values[0]
    return ""


def _link(devices: Iterable[PooledDevice]) -> str:
    """The worst link between two of its cards."""
    cards = [one for one in dict.fromkeys(devices) if not is_instance(one)]
    return links.worst([links.site(one.device) for one in cards])


def _given(result: DeviceRequestAllocationResult, device: PooledDevice | None) -> Given:
    """One device; of one that is published no more, its name is all that is left."""
    consumed = result.consumed_capacity
    memory, cores = consumed.get(names.MEMORY), consumed.get(names.CORES)
    return Given(
        request=result.request,
        pool=result.pool,
        device=result.device,
        index=-1 if device is None else index_of(device.device),
        uuid="" if device is None else text(device, names.UUID),
        profile="" if device is None else profile(device),
        share_id=result.share_id or "",
        memory_mib=0 if memory is None else memory.ceil() // MIB,
        cores=0 if cores is None else cores.ceil(),
        admin_access=bool(result.admin_access),
    )


def _pod(claim: ResourceClaim) -> str:
    """Who uses it: the first pod that it is reserved for, else the one that owns it."""
    return next(_pods(claim), "")


def _pods(claim: ResourceClaim) -> Iterator[str]:
    for user in claim.status.reserved_for:
        if user.resource == "pods":
            yield user.name
    for owner in claim.metadata.owner_references:
        if owner.kind == "Pod":
            yield owner.name
