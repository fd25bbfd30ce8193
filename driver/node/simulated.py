"""Cards that are not there: real models from profiles, so that all else can be the real thing.

Pure but for reading the packaged profiles; the same node and spec always give the same cards.
"""

import re
import uuid
from importlib import resources

import msgspec
import yaml

from driver.node.card import MIB, Card
from driver.node.errors import SettingsError
from driver.node.mig import MigCapability, MigProfile
from driver.node.settings import NodeSettings

_SPEC = re.compile(r"(?P<count>[1-9]\d?)x(?P<model>[A-Za-z0-9-]+)", re.ASCII)
# Any fixed namespace does: it only has to be ours, so that no real card has such a UUID.
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "simulated.gpu.quadrant.dev")
_DRIVER_VERSION = "580.95.05"
_CUDA_DRIVER_VERSION = "13.0"


class Slot(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Where one card of a profile sits."""

    pci_bus_id: str
    pcie_root: str
    numa_node: int
    nvlink_group: str | None
    pcie_switch: str | None = None


class Partition(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One kind of MIG partition."""

    name: str
    # Memory slices that it takes, and where it may begin.
    size: int
    starts: tuple[int, ...]
    memory_mib: int
    multiprocessors: int
    copy_engines: int
    decoders: int
    jpeg_engines: int
    ofa_engines: int


class Profile(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """One model of card and the machine it is usually found in."""

    product: str
    brand: str
    architecture: str
    # Mebibytes that NVML reports as the total, which is less than the name of the card says.
    memory_mib: int = msgspec.field(name="memoryMiB")
    cuda_compute_capability: str
    slots: tuple[Slot, ...]
    addressing_mode: str | None = None
    # Places on the board, in the order of the index; empty: the cards have none.
    module_ids: tuple[int, ...] = msgspec.field(name="moduleIDs", default=())
    # Empty: the model has no MIG.
    mig: tuple[Partition, ...] = ()


def models() -> tuple[str, ...]:
    """Names of all models there is a profile for."""
    folder = resources.files("driver.node") / "profiles"
    names = (entry.name for entry in folder.iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml")))


def profile(model: str) -> Profile:
    """The profile of a model; raises `SettingsError` that lists the known ones."""
    known = models()
    if model not in known:
        raise SettingsError(f"no profile for GPU model {model!r}; known are {', '.join(known)}")
    text = (resources.files("driver.node") / "profiles" / f"{model}.yaml").read_text("utf-8")
    return msgspec.convert(yaml.safe_load(text), Profile)


def cards(spec: str, node: str) -> tuple[Card, ...]:
    """The cards of `spec` ("4xT4") on `node`; UUIDs come from the node's name and the index.

    Raises `SettingsError` for a spec that is not of this form, an unknown model, or more cards
    than a machine of that kind holds.
    """
    match = _SPEC.fullmatch(spec)
    if match is None:
        raise SettingsError(f"cannot simulate {spec!r}: expected COUNTxMODEL, such as 4xT4")
    count, kind = int(match["count"]), profile(match["model"])
    if count > len(kind.slots):
        raise SettingsError(
            f"cannot simulate {spec!r}: a machine with {match['model']} holds at most "
            f"{len(kind.slots)}"
        )
    return tuple(_card(kind, node, index) for index in range(count))


def _card(kind: Profile, node: str, index: int) -> Card:
    slot = kind.slots[index]
    return Card(
        index=index,
        uuid=f"GPU-{uuid.uuid5(_NAMESPACE, f'{node}/{index}')}",
        product_name=kind.product,
        brand=kind.brand,
        architecture=kind.architecture,
        memory=kind.memory_mib * MIB,
        cuda_compute_capability=kind.cuda_compute_capability,
        driver_version=_DRIVER_VERSION,
        cuda_driver_version=_CUDA_DRIVER_VERSION,
        pci_bus_id=slot.pci_bus_id,
        pcie_root=slot.pcie_root,
        pcie_switch=slot.pcie_switch,
        numa_node=slot.numa_node,
        nvlink_group=slot.nvlink_group,
        addressing_mode=kind.addressing_mode,
        module_id=kind.module_ids[index] if kind.module_ids else None,
        mig=_mig(kind.mig) if kind.mig else None,
    )


def _mig(partitions: tuple[Partition, ...]) -> MigCapability:
    profiles = tuple(
        MigProfile(
            name=partition.name,
            size=partition.size,
            starts=partition.starts,
            memory=partition.memory_mib * MIB,
            multiprocessors=partition.multiprocessors,
            copy_engines=partition.copy_engines,
            decoders=partition.decoders,
            jpeg_engines=partition.jpeg_engines,
            ofa_engines=partition.ofa_engines,
        )
        for partition in partitions
    )
    return MigCapability(enabled=False, pending=False, profiles=profiles)


class SimulatedInventory:
    """The inventory port over `cards`."""

    def __init__(self, spec: str, node: str) -> None:
        self._cards = cards(spec, node)

    @classmethod
    def of(cls, settings: NodeSettings) -> "SimulatedInventory":
        """The cards that the settings name; raises `SettingsError`."""
        return cls(settings.simulate, settings.node_name)

    def cards(self) -> tuple[Card, ...]:
        """All cards of the spec."""
        return self._cards
