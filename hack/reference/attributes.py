"""docs/reference/attributes.md: what is published of devices, from devices as they are published.

What a name means and where it comes from is said here; which names there are, of which type, is
read off the devices, so that none can be missing.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from driver.model import names
from driver.model.resourceslice import Device, DeviceAttribute, DeviceCapacity
from driver.node.card import Card
from driver.node.mig import MigCapability, MigProfile
from driver.node.sharing.offered import offered
from driver.node.sharing.partitions import MigMode
from hack.reference.markdown import code, page, prose, table

# Source, on which cards it is there, meaning.
ATTRIBUTES: Mapping[str, tuple[str, str, str]] = {
    "type": ("the plugin", "all", "`gpu`, or `mig` for a part of a card"),
    names.UUID: (
        "`nvmlDeviceGetUUID`", "all; a part that is made for claims has none",
        "the card's UUID, of a part its own",
    ),
    names.PRODUCT_NAME: (
        "`nvmlDeviceGetName`", "all", "the product's name as `nvidia-smi` shows it"
    ),
    "brand": ("`nvmlDeviceGetBrand`", "those that tell", "NVIDIA's brand, such as `Nvidia`"),
    "architecture": (
        "`nvmlDeviceGetArchitecture`", "those that tell",
        "`Turing`, `Ampere`, `Ada Lovelace`, `Hopper`, `Blackwell`, …",
    ),
    names.INDEX: (
        "`nvmlDeviceGetHandleByIndex`", "all",
        "NVML's index when the card was first seen since the machine started; it stays",
    ),
    "cudaComputeCapability": (
        "`nvmlDeviceGetCudaComputeCapability`", "those that tell",
        "made semantic: 8.0 is `8.0.0`",
    ),
    "driverVersion": (
        "`nvmlSystemGetDriverVersion`", "all", "made semantic: 580.95.05 is `580.95.5`"
    ),
    "cudaDriverVersion": (
        "`nvmlSystemGetCudaDriverVersion_v2`", "all",
        "the newest CUDA that the driver serves, made semantic",
    ),
    "addressingMode": (
        "`nvmlDeviceGetAddressingMode`", "drivers that tell; not parts",
        "how the card reaches the machine's memory: `HMM`, `ATS` or `None`",
    ),
    "gpuModuleID": (
        "`nvmlDeviceGetModuleId`", "cards on a board with others (SXM); not parts",
        "the card's place on its board",
    ),
    names.MIG_CAPABLE: (
        "`nvmlDeviceGetMigMode`", "A30, A100, H100 and newer ones with MIG; not parts",
        "`true`; absent where the card cannot be cut into parts",
    ),
    names.NVLINK_GROUP: (
        "NVML's links and fabric", "cards with NVLink; not parts",
        ("equal for cards that reach each other over NVLink: directly, over NVSwitch, or in a "
        "fabric, where it is `CLUSTER-UUID.CLIQUE` on every machine of it; absent without a link, "
        "and while the fabric manager has not connected the switches"),
    ),
    names.PCIE_SWITCH: (
        "Linux (`/sys/bus/pci`)", "cards below a PCIe switch; not parts",
        ("the address of the upstream port of the nearest switch; equal for cards on one switch, "
        "absent on a root port"),
    ),
    "limits": (
        "the plugin", "cards that can be shared",
        "what keeps a container within its share: `hami-core` or `advisory` (nothing does)",
    ),
    "profile": ("NVML's profiles of GPU instances", "parts", "MIG profile, such as `1g.10gb`"),
    names.PARENT_UUID: ("`nvmlDeviceGetUUID`", "parts", "the card that it is a part of"),
    names.PCI_BUS_ID: ("`nvmlDeviceGetPciInfo`", "all", "PCI address, as Linux writes it"),
    names.PCIE_ROOT: (
        "Linux (`/sys/bus/pci`)", "cards on PCIe", "root complex, such as `pci0000:16`"
    ),
    names.NUMA_NODE: (
        "Linux (`numa_node`)", "where Linux knows it (not -1)", "the nearest NUMA node"
    ),
}  # fmt: skip
# Unit, and meaning.
CAPACITIES: Mapping[str, tuple[str, str]] = {
    names.MEMORY: (
        "bytes, whole Mi",
        "what NVML reports as the total. Where cards are shared: from 1Mi in steps of 1Mi",
    ),
    names.CORES: (
        "percent",
        "100; whole cards only. Where cards are shared: from 0 in steps of 1",
    ),
    "multiprocessors": ("number", "of the part"),
    "copyEngines": ("number", "of the part"),
    "decoders": ("number", "of the part"),
    "encoders": ("number", "of the part"),
    "jpegEngines": ("number", "of the part"),
    "ofaEngines": ("number", "optical flow engines of the part"),
    "memorySliceN": ("1", "the part takes the card's memory slice N"),
}
# A card of which everything is known, and which can be cut into parts.
_CARD = Card(
    index=0,
    uuid="GPU-1",
    product_name="NVIDIA A100-SXM4-40GB",
    brand="Nvidia",
    architecture="Ampere",
    memory=40 << 30,
    cuda_compute_capability="8.0",
    driver_version="580.95.05",
    cuda_driver_version="13.0",
    pci_bus_id="0000:17:00.0",
    pcie_root="pci0000:16",
    pcie_switch="0000:15:00.0",
    numa_node=0,
    addressing_mode="HMM",
    module_id=1,
    nvlink_group="0",
    mig=MigCapability(
        enabled=False,
        pending=False,
        profiles=(MigProfile(name="1g.5gb", size=1, starts=(0,), memory=5 << 30,
                             multiprocessors=14, copy_engines=1, decoders=1, encoders=1,
                             jpeg_engines=1, ofa_engines=1),),
    ),
)  # fmt: skip


def text() -> str:
    """The page."""
    return page("Attributes and capacities of devices", _lines())


def devices() -> tuple[Device, ...]:
    """A card and a part of it, with everything that can be published of them."""
    return offered([_CARD], mig=MigMode.DYNAMIC, shareable=True).devices(counters=True)


def published(devices: Iterable[Device]) -> dict[str, str]:
    """All attributes by name, with their type."""
    return {
        name: _type(attribute)
        for device in devices
        for name, attribute in device.attributes.items()
    }


def capacities(devices: Iterable[Device]) -> dict[str, DeviceCapacity]:
    """All capacities by name; memory slices count as one."""
    return {
        name.rstrip("0123456789") + ("N" if name.startswith("memorySlice") else ""): capacity
        for device in devices
        for name, capacity in device.capacity.items()
    }


def _lines() -> Iterator[str]:
    made = devices()
    types = published(made)
    yield from prose(
        """
        What a node plugin publishes in its ResourceSlices: one pool a node, devices `gpu-INDEX`
        and, for parts, `gpu-INDEX-mig-PROFILE-START`. Names without a domain are in the
        driver's own: in CEL `device.attributes["gpu.quadrant.dev"].productName`,
        `device.capacity["gpu.quadrant.dev"].memory`. What a card or its driver does not tell is
        left out; on simulated cards the profile says it. [Attributes of your
        own](../node-plugin.md#attributes-of-your-own) can be added.
        """
    )
    yield ""
    yield "## Attributes"
    yield ""
    yield "In the driver's domain:"
    yield from table(_HEAD, (_row(name, types) for name in ATTRIBUTES if "/" not in name))
    yield "In the domain of Kubernetes, equal across drivers, for `matchAttribute`:"
    yield from table(_HEAD, (_row(name, types) for name in ATTRIBUTES if "/" in name))
    yield "## Capacities"
    yield from table(
        ("capacity", "unit", "of", ""),
        ((code(name), unit, _of(name, made), meaning)
         for name, (unit, meaning) in CAPACITIES.items()),
    )  # fmt: skip
    yield from prose(
        """
        **A request that names no amount gets all of it.** A claim that shares a card names
        both: `capacity: {requests: {memory: 7500Mi, cores: 30}}`.
        """
    )
    yield ""
    yield "## Counters"
    yield ""
    yield from prose(
        """
        Where claims have parts made (`mig=dynamic`), a card and its parts draw from one counter
        set, `gpu-INDEX-counter-set`, so that what overlaps is never given out twice (KEP-4815).
        Its counters:
        """
    )
    yield f"{', '.join(_counters(made))} (`N` from 0)."


_HEAD = ("attribute", "type", "from", "on", "")


def _row(name: str, types: Mapping[str, str]) -> tuple[str, ...]:
    source, cards, meaning = ATTRIBUTES[name]
    return code(name), types[name], source, cards, meaning


def _type(attribute: DeviceAttribute) -> str:
    told = msgspec.to_builtins(attribute)
    return "".join(str(name).rstrip("_") for name in told)


def _of(name: str, made: Iterable[Device]) -> str:
    kinds = {"gpu": "cards", "mig": "parts"}
    found = [
        kinds[str(device.attributes["type"].string)]
        for device in made
        if name in capacities([device])
    ]
    return ", ".join(dict.fromkeys(found))


def _counters(made: Iterable[Device]) -> list[str]:
    found = (name for device in made for draw in device.consumes_counters for name in draw.counters)
    return [code(name.replace("slice-0", "slice-N")) for name in dict.fromkeys(found)]
