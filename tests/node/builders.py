"""Small makers of what the node plugin works on; every one gives a complete object."""

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import structs

from driver.model import gpuconfig
from driver.model.api import ObjectMeta
from driver.model.quantity import parse
from driver.model.resourceclaim import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from driver.node.card import Card
from driver.node.claims import ClaimRef, NodeFacts
from driver.node.device import device_name
from driver.node.held import HeldDevice, PreparedClaim
from driver.node.mig import MigCapability, MigProfile
from driver.node.sharing.offered import offered
from driver.node.sharing.partitions import MigMode
from driver.node.simulated import cards

DRIVER = "gpu.quadrant.dev"
NODE = "n1"
BOOT = "boot-1"
MIB = 1024 * 1024
GIB = 1024 * MIB
UIDS = [f"{n:08}-0000-4000-8000-000000000000" for n in range(16)]


# What the last card can be cut into, where a test wants that: four slices.
MIG = MigCapability(
    enabled=False,
    pending=False,
    profiles=(
        MigProfile(name="1g.4gb", size=1, starts=(0, 1, 2, 3), memory=3 * GIB, multiprocessors=10),
        MigProfile(name="2g.8gb", size=2, starts=(0, 2), memory=7 * GIB, multiprocessors=20),
        MigProfile(name="4g.16gb", size=4, starts=(0,), memory=14 * GIB, multiprocessors=40),
    ),
)


@lru_cache
def _cards(spec: str, cut: MigMode) -> tuple[Card, ...]:
    found = cards(spec, NODE)
    if cut is MigMode.OFF:
        return found
    return (*found[:-1], structs.replace(found[-1], mig=MIG))


def facts(
    spec: str = "4xT4",
    *,
    boot: str = BOOT,
    vendor: bool = False,
    cut: MigMode = MigMode.OFF,
    mps_dir: str = "",
    hami_core_dir: str = "",
) -> NodeFacts:
    """What a node of simulated cards knows of itself; with `cut` the last one can be cut up."""
    found = _cards(spec, cut)
    offer = offered(found, mig=cut, shareable=True)
    ids = {card.uuid: f"nvidia.com/gpu={card.uuid}" for card in found} if vendor else {}
    return NodeFacts(
        driver=DRIVER,
        pool=NODE,
        boot=boot,
        cards={device_name(card): card for card in found},
        parts=offer.parts,
        cuts_cards=offer.cuts_cards(),
        vendor_devices=ids,
        mps_dir=mps_dir,
        hami_core_dir=hami_core_dir,
        hami_core_state="/state/hami",
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


def config(
    sharing: dict[str, Any], *requests: str, source: str = "FromClaim"
) -> DeviceAllocationConfiguration:
    """A GpuConfig with this sharing, as it stands in an allocation."""
    parameters = json.dumps(
        {"apiVersion": gpuconfig.API_VERSION, "kind": gpuconfig.KIND, "sharing": sharing}
    )
    opaque = OpaqueDeviceConfiguration(driver=DRIVER, parameters=msgspec.Raw(parameters.encode()))
    return DeviceAllocationConfiguration(source=source, requests=requests, opaque=opaque)


def slicing(interval: str = "Long") -> DeviceAllocationConfiguration:
    """Time-slicing in this rhythm."""
    return config({"strategy": "TimeSlicing", "timeSlicing": {"interval": interval}})


def mps(*requests: str, **limits: Any) -> DeviceAllocationConfiguration:
    """MPS with these limits."""
    return config({"strategy": "MPS", "mps": limits}, *requests)


def claim(
    number: int = 0,
    *results: DeviceRequestAllocationResult,
    reserved: bool = True,
    config: Iterable[DeviceAllocationConfiguration] = (),
) -> ResourceClaim:
    """An allocated claim; without results it is not allocated."""
    asked = ref(number)
    pod = ResourceClaimConsumerReference(resource="pods", name=f"pod-{number}", uid="pod-uid")
    allocation = AllocationResult(
        devices=DeviceAllocationResult(results=results, config=tuple(config))
    )
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
    subrequest: str = "",
) -> HeldDevice:
    """What one result holds of a T4; `memory` in MiB."""
    card = facts().cards[device]
    return HeldDevice(
        request=request,
        subrequest=subrequest,
        pool=NODE,
        device=device,
        share_id=share,
        admin_access=admin,
        memory=memory * MIB,
        cores=cores,
        index=card.index,
        uuid=card.uuid,
        model=card.product_name,
        pci_bus_id=card.pci_bus_id,
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


# Claims that fit together or do not: whole cards, shares, two requests; parts of the last card,
# which somebody wants whole as well; time slices that agree or do not.
CLAIMS = [
    claim(0, result("gpu-0")),
    claim(1, result("gpu-0", memory="8Gi", cores="10")),
    claim(2, result("gpu-0", memory="7Gi", cores="90")),
    claim(3, result("gpu-0", "a", memory="1Gi", cores="5"), result("gpu-1", "b")),
    claim(4, result("gpu-1")),
    claim(5, result("gpu-1", memory="1Gi", cores="0")),
    claim(6, result("gpu-3-mig-1g4gb-1"), result("gpu-3-mig-2g8gb-2", "b")),
    claim(7, result("gpu-3-mig-2g8gb-0")),
    claim(8, result("gpu-3", share="all")),
    claim(9, result("gpu-2", memory="1Gi", cores="0"), config=[slicing("Long")]),
    claim(10, result("gpu-2", memory="1Gi", cores="0"), config=[slicing("Short")]),
    claim(11, result("gpu-2", memory="1Gi", cores="0")),
]
