"""What is published of a card: its device, with attributes, capacities and request policies.

Pure. The names are those that other GPU drivers use, so that a selector written for them needs
only another driver domain; an attribute that the hardware does not tell is left out.
"""

import re

from driver.model.names import (
    CORES,
    INDEX,
    MEMORY,
    MIG_CAPABLE,
    NUMA_NODE,
    NVLINK_GROUP,
    PCI_BUS_ID,
    PCIE_ROOT,
    PCIE_SWITCH,
    PRODUCT_NAME,
    UUID,
)
from driver.model.quantity import whole
from driver.model.resourceslice import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Device,
    DeviceAttribute,
    DeviceCapacity,
)
from driver.node.card import ALL_CORES, MIB, Card

_TYPE = "gpu"
_VERSION_PARTS = 3


def device_name(card: Card) -> str:
    """The device's name in its pool: stable as long as the index is."""
    return f"gpu-{card.index}"


def device(card: Card, *, shareable: bool) -> Device:
    """The device of a card.

    `shareable` publishes memory and cores as consumable capacity (KEP-5075): several claims may
    then hold the card, each with its part, and who asks for no amount gets all of it. A card that
    does not tell its memory has no such capacity.
    """
    memory = {MEMORY: _memory(card, shareable)} if card.usable_memory() else {}
    return Device(
        name=device_name(card),
        attributes=attributes(card),
        capacity={**memory, CORES: _cores(shareable)},
        allow_multiple_allocations=True if shareable else None,
    )


def attributes(card: Card) -> dict[str, DeviceAttribute]:
    """All attributes of a card; unqualified names are in the driver's own domain."""
    texts = {
        "type": _TYPE,
        UUID: card.uuid,
        PRODUCT_NAME: card.product_name,
        "brand": card.brand,
        "architecture": card.architecture,
        PCI_BUS_ID: card.pci_bus_id,
        PCIE_ROOT: card.pcie_root,
        PCIE_SWITCH: card.pcie_switch,
        NVLINK_GROUP: card.nvlink_group,
        "addressingMode": card.addressing_mode,
    }
    numbers = {INDEX: card.index, NUMA_NODE: card.numa_node, "gpuModuleID": card.module_id}
    # Whether the mode is on is not told: where claims cut cards up, it changes with every claim.
    flags = {MIG_CAPABLE: True} if card.mig is not None else {}
    versions = {
        "cudaComputeCapability": card.cuda_compute_capability,
        "driverVersion": card.driver_version,
        "cudaDriverVersion": card.cuda_driver_version,
    }
    return {
        **{name: DeviceAttribute(string=text) for name, text in texts.items() if text},
        **{name: DeviceAttribute(int_=n) for name, n in numbers.items() if n is not None},
        **{name: DeviceAttribute(bool_=flag) for name, flag in flags.items()},
        **{name: DeviceAttribute(version=semantic(v)) for name, v in versions.items() if v},
    }


def semantic(version: str) -> str:
    """A vendor's version as the semantic version that the API demands.

    "580.95.05" has a leading zero and "7.5" lacks a part; neither is semantic versioning 2.0.
    Parts beyond the third do not take part in any comparison and are dropped.
    """
    parts = [str(int(part)) for part in re.findall(r"\d+", version)[:_VERSION_PARTS]]
    return ".".join(parts + ["0"] * (_VERSION_PARTS - len(parts)))


def _memory(card: Card, shareable: bool) -> DeviceCapacity:  # noqa: FBT001
    total = whole(card.usable_memory(), "BinarySI")
    step = whole(MIB, "BinarySI")
    policy = CapacityRequestPolicy(
        default=total, valid_range=CapacityRequestPolicyRange(min=step, step=step, max=total)
    )
    return DeviceCapacity(value=total, request_policy=policy if shareable else None)


def _cores(shareable: bool) -> DeviceCapacity:  # noqa: FBT001
    total = whole(ALL_CORES)
    policy = CapacityRequestPolicy(
        default=total,
        valid_range=CapacityRequestPolicyRange(min=whole(0), step=whole(1), max=total),
    )
    return DeviceCapacity(value=total, request_policy=policy if shareable else None)
