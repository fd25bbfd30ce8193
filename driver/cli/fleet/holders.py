"""Who holds which device, by the allocations that the cluster has stored."""

from collections.abc import Iterable

import msgspec

from driver.model.ids import DeviceId, ObjectKey
from driver.model.quantity import Quantity
from driver.model.resourceclaim import ResourceClaim


class Holding(msgspec.Struct, frozen=True, gc=False):
    """One claim's hold on one device: all of it, or a share of what it has."""

    claim: ObjectKey
    share: bool
    consumed: dict[str, Quantity] = {}


Holders = dict[DeviceId, list[Holding]]


def holders(claims: Iterable[ResourceClaim]) -> Holders:
    """All holds; who merely looks at a device (admin access) holds nothing of it."""
    found: Holders = {}
    for claim in claims:
        enter(found, claim)
    return found


def enter(found: Holders, claim: ResourceClaim) -> None:
    """Add the holds of one claim."""
    allocation = claim.status.allocation
    key = ObjectKey(claim.metadata.namespace, claim.metadata.name)
    for result in allocation.devices.results if allocation is not None else ():
        if not result.admin_access:
            hold = Holding(key, result.share_id is not None, result.consumed_capacity)
            found.setdefault(result.device_id(), []).append(hold)
