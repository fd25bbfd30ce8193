"""May this claim be prepared on this node, and what does it hold then?

Pure: the claim as the API server has it now goes in, an entry or a refusal comes out. What other
claims hold is not known here (`driver.node.held`).
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from driver.model.names import CORES, MEMORY
from driver.model.quantity import Quantity, whole
from driver.model.resourceclaim import DeviceRequestAllocationResult, ResourceClaim
from driver.node.card import ALL_CORES, Card
from driver.node.errors import ClaimRefusedError
from driver.node.held import HeldDevice, PreparedClaim

# The UID becomes part of a file's name and of CDI device names.
_UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,62}[A-Za-z0-9]", re.ASCII)


class ClaimRef(NamedTuple):
    """A claim as the kubelet names it."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name} ({self.uid})"


class NodeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a claim is checked against."""

    driver: str
    pool: str
    boot: str
    # By name of the device; with the vendor's CDI device of each card that has one.
    cards: Mapping[str, Card]
    vendor_devices: Mapping[str, str] = {}


def usable_uid(uid: str) -> bool:
    """Whether a UID can be part of a file name; those that the API server makes always can."""
    return _UID.fullmatch(uid) is not None


def entry(asked: ClaimRef, claim: ResourceClaim | None, node: NodeFacts) -> PreparedClaim:
    """What the claim holds once it is prepared.

    Raises `ClaimRefusedError` unless the claim is the one asked for, allocated, reserved, and all
    its results of our driver are cards of this node.
    """
    results = _results(asked, claim, node.driver)
    return PreparedClaim(
        uid=asked.uid,
        namespace=asked.namespace,
        name=asked.name,
        boot=node.boot,
        devices=tuple(_held(asked, result, node) for result in results),
    )


def _results(
    asked: ClaimRef, claim: ResourceClaim | None, driver: str
) -> tuple[DeviceRequestAllocationResult, ...]:
    if not usable_uid(asked.uid):
        raise ClaimRefusedError(f"claim UID {asked.uid!r} is not one that an API server makes")
    if claim is None:
        raise ClaimRefusedError(f"claim {asked} does not exist any more")
    if claim.metadata.uid != asked.uid:
        raise ClaimRefusedError(
            f"claim {asked} was replaced by one with UID {claim.metadata.uid}; the pod belongs to "
            "the old one and must be created again"
        )
    if claim.status.allocation is None:
        raise ClaimRefusedError(f"claim {asked} is not allocated (any more)")
    if not claim.status.reserved_for:
        raise ClaimRefusedError(f"claim {asked} is allocated but reserved for no pod")
    results = claim.status.allocation.devices.results
    ours = tuple(result for result in results if result.driver == driver)
    if not ours:
        raise ClaimRefusedError(f"claim {asked} has no device of driver {driver} allocated")
    return ours


def _held(asked: ClaimRef, result: DeviceRequestAllocationResult, node: NodeFacts) -> HeldDevice:
    if result.pool != node.pool:
        raise ClaimRefusedError(
            f"claim {asked} has device {result.device_id()}, but this node's pool is {node.pool}"
        )
    card = node.cards.get(result.device)
    if card is None:
        raise ClaimRefusedError(
            f"claim {asked} has device {result.device_id()}, which this node does not have; "
            f"it has {', '.join(node.cards) or 'none'}"
        )
    return HeldDevice(
        request=result.request.partition("/")[0],
        pool=result.pool,
        device=result.device,
        share_id=result.share_id,
        admin_access=bool(result.admin_access),
        memory=_consumed(result, MEMORY, whole(card.usable_memory())),
        cores=_consumed(result, CORES, whole(ALL_CORES)),
        index=card.index,
        uuid=card.uuid,
        model=card.product_name,
        card_memory=card.usable_memory(),
        vendor_device=node.vendor_devices.get(card.uuid),
    )


def _consumed(result: DeviceRequestAllocationResult, name: str, default: Quantity) -> int:
    # Without consumed capacity a result has all of its device, a share that names none as well.
    return result.consumed_capacity.get(name, default).ceil()
