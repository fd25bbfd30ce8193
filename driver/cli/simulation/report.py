"""What a simulation came to: the data of tables, pictures and `-o json`.

The JSON is an interface: a change that breaks its readers needs another `apiVersion`.
"""

import msgspec

from driver.model.names import DOMAIN

API_VERSION = f"{DOMAIN}/v1alpha1"
KIND = "Simulation"
MIB = 1024 * 1024


class _Reported(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all parts: every field is written, also one that has its default."""


class GivenDevice(_Reported, frozen=True, kw_only=True, rename={"memory_mib": "memoryMiB"}):
    """One card, or a share of one, that a pod got; `index` is -1 where none is published."""

    claim: str
    request: str
    pool: str
    device: str
    index: int
    uuid: str
    # A whole card has no share; of a share, what of memory and cores (percent) it has.
    shared: bool
    memory_mib: int
    cores: int


class Placement(_Reported, frozen=True, kw_only=True):
    """One pod that runs, with its policies and one sentence per claim on why these devices."""

    namespace: str
    pod: str
    node: str
    devices: tuple[GivenDevice, ...] = ()
    node_policy: str = ""
    gpu_policy: str = ""
    why: tuple[str, ...] = ()


class PendingPod(_Reported, frozen=True, kw_only=True):
    """One pod that does not run, and why; a refused one was not even created."""

    namespace: str
    pod: str
    refused: bool
    reason: str


class CardUse(
    _Reported,
    frozen=True,
    kw_only=True,
    rename={
        "memory_mib": "memoryMiB",
        "memory_used_mib": "memoryUsedMiB",
        "nvlink_group": "nvlinkGroup",
        "cores_used": "coresUsed",
    },
):
    """One card at the end. An exclusive one has a single holder and no shares."""

    node: str
    device: str
    index: int
    uuid: str
    product: str
    nvlink_group: str
    memory_mib: int
    memory_used_mib: int
    cores_used: int
    shares: int
    exclusive: bool


class Report(_Reported, frozen=True, kw_only=True):
    """Everything a simulation says; all lists in the order of the input."""

    api_version: str = API_VERSION
    kind: str = KIND
    kubernetes: str
    placements: tuple[Placement, ...]
    pending: tuple[PendingPod, ...]
    cards: tuple[CardUse, ...]
    warnings: tuple[str, ...] = ()
