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
    """One pod that does not run, and why; a refused one was not even created.

    `would_fit` are things that would help, each alone, where it waits for devices.
    """

    namespace: str
    pod: str
    refused: bool
    reason: str
    would_fit: tuple[str, ...] = ()


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
    """One card at the end. An exclusive one has a single holder and no shares.

    Of its `shares`, `parts` are parts of a card that is divided (MIG).
    """

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
    parts: int
    exclusive: bool


class Metrics(_Reported, frozen=True, kw_only=True):
    """A placement in numbers. Percentages are from 0 to 100.

    `largest_free_group` is the most free cards of one NVLink group, where there are none of one
    node. `fragmentation` is the share of the free memory that is on cards of which something is in
    use, `whole_free_percent` the rest of it.
    """

    placed: int
    pending: int
    placed_percent: float
    pending_by_reason: dict[str, int]
    cards_used: int
    cards_free: int
    nodes_used: int
    nodes_free: int
    largest_free_group: int
    fragmentation: float
    whole_free_percent: float


class Report(_Reported, frozen=True, kw_only=True):
    """Everything a simulation says; all lists in the order of the input.

    `policy` is what held for pods that said nothing, NODE/GPU. `before` are the cards as they were
    before the first pod, `cards` as they are at the end.
    """

    api_version: str = API_VERSION
    kind: str = KIND
    kubernetes: str
    policy: str
    metrics: Metrics
    placements: tuple[Placement, ...]
    pending: tuple[PendingPod, ...]
    before: tuple[CardUse, ...]
    cards: tuple[CardUse, ...]
    warnings: tuple[str, ...] = ()


class Comparison(_Reported, frozen=True, kw_only=True):
    """The same input under several policies, in the order in which they were asked for."""

    api_version: str = API_VERSION
    kind: str = "Comparison"
    kubernetes: str
    simulations: tuple[Report, ...]
