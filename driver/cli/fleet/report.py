"""What `matrix` and `claims` show, and the page of the controller: the data of `-o json`.

The JSON is an interface: a change that breaks its readers needs another `apiVersion`.
"""

from typing import Literal

import msgspec

from driver.model.names import DOMAIN

API_VERSION = f"{DOMAIN}/v1alpha1"
MIB = 1024 * 1024

CardUse = Literal["free", "whole", "shared", "mig"]
"""What is in use of a card: nothing, all for one claim, shares, or instances of it (MIG)."""


class _Reported(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Base of all parts: every field is written, also one that has its default.

    None of them can be part of a cycle, and a picture has many: the collector need not know them.
    """


class Card(
    _Reported,
    frozen=True,
    kw_only=True,
    rename={
        "nvlink_group": "nvlinkGroup",
        "numa_node": "numaNode",
        "memory_mib": "memoryMiB",
        "memory_used_mib": "memoryUsedMiB",
        "mig_in_use": "migInUse",
    },
):
    """One physical card.

    `index` is -1 and `numa_node` None where they are not published. `shares` counts the claims
    that have a part of it, `mig_in_use` names the profiles of its instances that are given away.
    `taints` keep new pods away; `claims` are its holders, as NAMESPACE/NAME.
    """

    device: str
    index: int
    uuid: str
    model: str
    nvlink_group: str
    numa_node: int | None
    memory_mib: int
    memory_used_mib: int
    use: CardUse
    shares: int
    mig_in_use: tuple[str, ...]
    taints: tuple[str, ...]
    claims: tuple[str, ...]

    @property
    def open(self) -> bool:
        """Nothing of it is in use, and nothing keeps a new pod away from it."""
        return self.use == "free" and not self.taints


class NodeCards(_Reported, frozen=True, kw_only=True):
    """One node with its cards, in the order of their index.

    `free` counts cards that are open, `largest_free` those of one NVLink group (without groups: of
    the node), `fragmentation` is the percentage of the free memory that is on cards in use, and
    `pending` counts pods that wait for the scheduler with a nomination for this node. `note` says
    what is wrong with the node or its slices.
    """

    node: str
    group: str
    cards: tuple[Card, ...]
    free: int
    largest_free: int
    fragmentation: float
    pending: int
    note: str


class Capacity(
    _Reported,
    frozen=True,
    kw_only=True,
    rename={
        "largest_free": "largestFree",
        "memory_mib": "memoryMiB",
        "memory_used_mib": "memoryUsedMiB",
        "memory_free_mib": "memoryFreeMiB",
        "memory_whole_mib": "memoryWholeMiB",
    },
):
    """The cards of one model: what there is, what can be given, what is given.

    `allocatable` are without those that a taint closes and nobody has; `committed` ones are held,
    all of them or a part. `largest_free` are the most open cards of one NVLink group of a node.
    Memory that is free is on allocatable cards, `memory_whole_mib` of it on cards nobody has.
    """

    model: str
    physical: int
    allocatable: int
    committed: int
    largest_free: int
    memory_mib: int
    memory_used_mib: int
    memory_free_mib: int
    memory_whole_mib: int


class Total(_Reported, frozen=True, kw_only=True):
    """The cluster in one line, and by model in `capacity`.

    Of the pods that wait, `gated` have no decision of ours yet, `nominated` wait for the scheduler
    with a node, `waiting` without one.
    """

    nodes: int
    cards: int
    free: int
    in_use: int
    tainted: int
    largest_free: int
    fragmentation: float
    gated: int
    nominated: int
    waiting: int
    capacity: tuple[Capacity, ...]


class Matrix(_Reported, frozen=True, kw_only=True):
    """All nodes that have cards of the driver; `group_by` is the label behind `group`."""

    api_version: str = API_VERSION
    kind: str = "Matrix"
    driver: str
    group_by: str
    nodes: tuple[NodeCards, ...]
    total: Total


class Given(
    _Reported,
    frozen=True,
    kw_only=True,
    rename={
        "memory_mib": "memoryMiB",
        "share_id": "shareID",
        "admin_access": "adminAccess",
    },
):
    """One device of a claim; of a share, what of memory and cores (percent) it is."""

    request: str
    pool: str
    device: str
    index: int
    uuid: str
    profile: str
    share_id: str
    memory_mib: int
    cores: int
    admin_access: bool


class Claim(_Reported, frozen=True, kw_only=True):
    """One claim. `state` is as `kubectl get resourceclaims` has it.

    `score` is None where nobody can say it any more; `policy` is NODE/GPU; `created` is a time as
    the API writes it; `link` is the worst link between two of its cards.
    """

    namespace: str
    name: str
    classes: tuple[str, ...]
    state: str
    node: str
    devices: tuple[Given, ...]
    link: str
    score: float | None
    policy: str
    pod: str
    created: str


class Claims(_Reported, frozen=True, kw_only=True):
    """Claims that have devices of the driver, or ask for a class that may have some."""

    api_version: str = API_VERSION
    kind: str = "Claims"
    driver: str
    claims: tuple[Claim, ...]
