"""Small makers of what the node plugin works on; every one gives a complete object."""

from collections.abc import Iterable
from functools import lru_cache

from driver.model.api import ObjectMeta
from driver.model.quantity import parse
from driver.model.resourceclaim import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from driver.node.card import Card
from driver.node.claims import ClaimRef, NodeFacts
from driver.node.device import device_name
from driver.node.held import HeldDevice, PreparedClaim
from driver.node.simulated import cards

DRIVER = "gpu.quadrant.dev"
NODE = "n1"
BOOT = "boot-1"
MIB = 1024 * 1024
UIDS = [f"0000000{n}-0000-4000-8000-000000000000" for n in range(8)]


@lru_cache
def _cards(spec: str) -> tuple[Card, ...]:
    return cards(spec, NODE)


def facts(spec: str = "4xT4", *, boot: str = BOOT, vendor: bool = False) -> NodeFacts:
    """What a node of simulated cards knows of itself."""
    found = _cards(spec)
    ids = {card.uuid: f"nvidia.com/gpu={card.uuid}" for card in found} if vendor else {}
    return NodeFacts(
        driver=DRIVER,
        pool=NODE,
        boot=boot,
        cards={device_name(card): card for card in found},
        vendor_devices=ids,
    )


def ref(number: int = 0, *, name: str | None = None) -> ClaimRef:
    """Claim number `number` as the kubelet names it."""
    return ClaimRef("default", name or f"claim-{number}", UIDS[number])


def result(
    device: str,
    request: str = "gpu",
    *,
    memory: str | None = None,
    cores: str | None = None,
    share: str | None = None,
    driver: str = DRIVER,
    pool: str = NODE,
    admin: bool | None = None,
) -> DeviceRequestAllocationResult:
    """One allocation result; with an amount or a share ID it is a share of the card."""
    consumed = {"memory": memory, "cores": cores}
    is_share = share is not None or memory is not None or cores is not None
    return DeviceRequestAllocationResult(
        request=request,
        driver=driver,
        pool=pool,
        device=device,
        admin_access=admin,
        share_id=(share or f"share-{request}-{device}") if is_share else None,
        consumed_capacity={name: parse(text) for name, text in consumed.items() if text},
    )


def claim(
    number: int = 0, *results: DeviceRequestAllocationResult, reserved: bool = True
) -> ResourceClaim:
    """An allocated claim; without results it is not allocated."""
    asked = ref(number)
    pod = ResourceClaimConsumerReference(resource="pods", name=f"pod-{number}", uid="pod-uid")
    allocation = AllocationResult(devices=DeviceAllocationResult(results=results))
    return ResourceClaim(
        metadata=ObjectMeta(namespace=asked.namespace, name=asked.name, uid=asked.uid),
        status=ResourceClaimStatus(
            allocation=allocation if results else None, reserved_for=(pod,) if reserved else ()
        ),
    )


def held(
    device: str = "gpu-0",
    request: str = "gpu",
    *,
    memory: int = 15360,
    cores: int = 100,
    share: str | None = None,
    admin: bool = False,
) -> HeldDevice:
    """What one result holds of a T4; `memory` in MiB."""
    card = facts().cards[device]
    return HeldDevice(
        request=request,
        pool=NODE,
        device=device,
        share_id=share,
        admin_access=admin,
        memory=memory * MIB,
        cores=cores,
        index=card.index,
        uuid=card.uuid,
        model=card.product_name,
        card_memory=card.usable_memory(),
    )


def prepared(
    number: int = 0, devices: Iterable[HeldDevice] = (), *, boot: str = BOOT, done: bool = True
) -> PreparedClaim:
    """An entry of the checkpoint."""
    asked = ref(number)
    return PreparedClaim(
        uid=asked.uid,
        namespace=asked.namespace,
        name=asked.name,
        phase="done" if done else "intent",
        boot=boot,
        devices=tuple(devices) or (held(),),
    )


# Claims that fit together or do not: whole cards, shares, two requests.
CLAIMS = [
    claim(0, result("gpu-0")),
    claim(1, result("gpu-0", memory="8Gi", cores="10")),
    claim(2, result("gpu-0", memory="7Gi", cores="90")),
    claim(3, result("gpu-0", "a", memory="1Gi", cores="5"), result("gpu-1", "b")),
    claim(4, result("gpu-1")),
    claim(5, result("gpu-1", memory="1Gi", cores="0")),
]
