"""May this claim be prepared on this node, and what does it hold then?

Pure: the claim as the API server has it now goes in, an entry or a refusal comes out. What other
claims hold is not known here (`driver.node.held`).
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from driver.model.errors import InvalidObjectError
from driver.model.gpuconfig import sharing_of
from driver.model.names import CORES, MEMORY, POD_CLAIM_NAME
from driver.model.quantity import Quantity, whole
from driver.model.resourceclaim import (
    AllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from driver.node.card import ALL_CORES, Card
from driver.node.errors import ClaimRefusedError
from driver.node.held import HeldDevice, Limiter, Metadata, Partition, PreparedClaim
from driver.node.sharing.partitions import Offer
from driver.node.sharing.rules import card_sharing, with_daemon

# The UID becomes part of a file's name and of CDI device names.
_UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,62}[A-Za-z0-9]", re.ASCII)

# What a pod may call a claim; it becomes part of a path in containers.
_POD_CLAIM = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)


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
    # By name of the device; parts of cards as well.
    cards: Mapping[str, Card]
    parts: Mapping[str, Offer] = {}
    # The vendor's CDI device of each card and part that has one, by UUID.
    vendor_devices: Mapping[str, str] = {}
    # Whether whole cards may have to be put together from what they were cut into (dynamic MIG).
    cuts_cards: bool = False
    # Where the folders of MPS daemons are, HAMi-core's library, and its state; empty: not here.
    mps_dir: str = ""
    hami_core_dir: str = ""
    hami_core_state: str = ""
    # Where the metadata of claims is put; empty: nowhere.
    metadata_dir: str = ""


def usable_uid(uid: str) -> bool:
    """Whether a UID can be part of a file name; those that the API server makes always can."""
    return _UID.fullmatch(uid) is not None


def entry(asked: ClaimRef, claim: ResourceClaim | None, node: NodeFacts) -> PreparedClaim:
    """What the claim holds once it is prepared.

    Raises `ClaimRefusedError` unless the claim is the one asked for, allocated, reserved, all its
    results of our driver are devices of this node, and its configuration is one for them.
    """
    allocation, results = _results(asked, claim, node.driver)
    held = PreparedClaim(
        uid=asked.uid,
        namespace=asked.namespace,
        name=asked.name,
        boot=node.boot,
        devices=tuple(_held(asked, result, node) for result in results),
        metadata=_metadata(claim, node),
    )
    try:
        configured = _configured(held, results, allocation, node)
    except InvalidObjectError as error:
        raise ClaimRefusedError(f"claim {asked} cannot be used as configured: {error}") from error
    return msgspec.structs.replace(configured, limiter=_limiter(configured, node))


def _configured(
    held: PreparedClaim,
    results: tuple[DeviceRequestAllocationResult, ...],
    allocation: AllocationResult,
    node: NodeFacts,
) -> PreparedClaim:
    devices = []
    for device, result in zip(held.devices, results, strict=True):
        asked = sharing_of(result.request, allocation.devices.config, driver=node.driver)
        devices.append(msgspec.structs.replace(device, sharing=card_sharing(asked, device)))
    return with_daemon(msgspec.structs.replace(held, devices=tuple(devices)), node.mps_dir)


def _metadata(claim: ResourceClaim | None, node: NodeFacts) -> Metadata | None:
    if claim is None or not node.metadata_dir:
        return None
    # Anybody who may make claims may write any annotation.
    pod_claim = claim.metadata.annotations.get(POD_CLAIM_NAME, "")
    return Metadata(
        folder=f"{node.metadata_dir}/{claim.metadata.uid}",
        pod_claim=pod_claim if _POD_CLAIM.fullmatch(pod_claim) else "",
    )


def _limiter(held: PreparedClaim, node: NodeFacts) -> Limiter | None:
    """HAMi-core, where the operator has put it and MPS does not keep the limits already."""
    parts = [device for device in held.devices if not device.is_whole() and not device.by_mps()]
    if not node.hami_core_dir or not parts:
        return None
    return Limiter(library=node.hami_core_dir, state=f"{node.hami_core_state}/{held.uid}")


def _results(
    asked: ClaimRef, claim: ResourceClaim | None, driver: str
) -> tuple[AllocationResult, tuple[DeviceRequestAllocationResult, ...]]:
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
    return claim.status.allocation, ours


def _held(asked: ClaimRef, result: DeviceRequestAllocationResult, node: NodeFacts) -> HeldDevice:
    if result.pool != node.pool:
        raise ClaimRefusedError(
            f"claim {asked} has device {result.device_id()}, but this node's pool is {node.pool}"
        )
    part = node.parts.get(result.device)
    card = part.card if part else node.cards.get(result.device)
    if card is None:
        raise ClaimRefusedError(
            f"claim {asked} has device {result.device_id()}, which this node does not have; "
            f"it has {', '.join((*node.cards, *node.parts)) or 'none'}"
        )
    if card.lost is not None:
        raise ClaimRefusedError(
            f"claim {asked} has device {result.device}, whose card does not answer: {card.lost}"
        )
    if part is None and not result.admin_access:
        _require_whole(asked, card, node)
    return _of_part(result, part, node) if part else _of_card(result, card, node)


def _require_whole(asked: ClaimRef, card: Card, node: NodeFacts) -> None:
    """A claim may be older than the setting by which its card is not offered whole any more."""
    if card.mig is not None and card.mig.enabled and not node.cuts_cards:
        raise ClaimRefusedError(
            f"claim {asked} has card {card.uuid} whole, which is in MIG mode, where nothing runs "
            f"on it: remove its parts, turn the mode off with nvidia-smi -i {card.uuid} -mig 0 and "
            "start the plugin again, or delete the pod and the claim"
        )


def _of_card(result: DeviceRequestAllocationResult, card: Card, node: NodeFacts) -> HeldDevice:
    return HeldDevice(
        request=result.request.partition("/")[0],
        subrequest=result.request.partition("/")[2],
        pool=result.pool,
        device=result.device,
        share_id=result.share_id,
        admin_access=bool(result.admin_access),
        memory=_consumed(result, MEMORY, whole(card.usable_memory())),
        cores=_consumed(result, CORES, whole(ALL_CORES)),
        index=card.index,
        uuid=card.uuid,
        model=card.product_name,
        pci_bus_id=card.pci_bus_id,
        card_memory=card.usable_memory(),
        vendor_device=node.vendor_devices.get(card.uuid),
        device_nodes=card.device_nodes,
        can_be_cut=card.mig is not None and node.cuts_cards,
    )


def _of_part(result: DeviceRequestAllocationResult, part: Offer, node: NodeFacts) -> HeldDevice:
    # Who only looks looks at the card, as nothing is made for it.
    uuid = part.uuid or (part.card.uuid if result.admin_access else "")
    return HeldDevice(
        request=result.request.partition("/")[0],
        subrequest=result.request.partition("/")[2],
        pool=result.pool,
        device=result.device,
        admin_access=bool(result.admin_access),
        memory=part.profile.memory,
        cores=ALL_CORES,
        index=part.card.index,
        uuid=uuid,
        model=part.card.product_name,
        pci_bus_id=part.card.pci_bus_id,
        card_memory=part.profile.memory,
        vendor_device=node.vendor_devices.get(uuid),
        partition=Partition(
            parent=part.card.uuid,
            profile=part.profile.name,
            start=part.start,
            size=part.profile.size,
            made=part.made(),
        ),
    )


def _consumed(result: DeviceRequestAllocationResult, name: str, default: Quantity) -> int:
    # Without consumed capacity a result has all of its device, a share that names none as well.
    return result.consumed_capacity.get(name, default).ceil()
