"""How many cards the cluster has, can give and has given away, kept up to date node by node.

For whoever watches the cluster, not for decisions: what it says may be a moment old. A node is
counted again when something on it has changed; what one reader asks for costs no more than that.
Cards are counted as they are in the machine: a MIG device belongs to its parent.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from driver.allocator.device import PooledDevice
from driver.controller.cluster import Cluster
from driver.model import names
from driver.model.allocation import DeviceUse
from driver.model.ids import DeviceId

_UNUSED = DeviceUse()
_NO_GROUPS: Mapping[int, int] = {}
_KEEPS_AWAY = frozenset({"NoSchedule", "NoExecute"})


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """Cards of one model; memory in bytes, as published.

    `allocatable` leaves out cards that a taint keeps claims away from and that nobody holds.
    `committed` cards are held, whole or in part, by claims that are allocated or just being
    committed. `free_whole` is the memory of allocatable cards that nobody holds any of,
    `free` all memory that nobody holds on allocatable cards.
    """

    physical: int = 0
    allocatable: int = 0
    committed: int = 0
    memory: int = 0
    memory_committed: int = 0
    free: int = 0
    free_whole: int = 0

    @property
    def fragmentation(self) -> float:
        """The part of the free memory that is on cards which somebody holds a part of; 0 to 1."""
        return 1 - self.free_whole / self.free if self.free else 0.0

    def plus(self, other: "Tally", sign: int = 1) -> "Tally":
        """The sum, field by field; with `sign` -1 the difference."""
        return Tally(
            **{
                name: getattr(self, name) + sign * getattr(other, name)
                for name in self.__struct_fields__
            }
        )


# How many groups of free linked cards there are of each size.
Groups = Counter[int]


class NodeCount(msgspec.Struct, frozen=True):
    """The cards of one node by model, and its groups of free linked cards by model.

    Cards without NVLink form one group, as the node is what they have in common.
    """

    by_model: Mapping[str, Tally]
    groups: Mapping[str, Groups]


_EMPTY = NodeCount({}, {})


class Census:
    """The counts of all nodes and their sums, as of the last `refresh`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._counted_at = -1
        self._outdated: set[str] = set()
        self._nodes: dict[str, NodeCount] = {}
        self._sums: dict[str, Tally] = {}
        self._groups: dict[str, Groups] = {}

    def refresh(self, at_most: int) -> bool:
        """Count so many of the nodes that have changed; whether all is up to date."""
        changes = self._cluster.facts
        since = changes.since(self._counted_at)
        changed = {*self._cluster.inventory.nodes(), *self._nodes} if since is None else since
        self._outdated.update(changed)
        self._counted_at = changes.now
        for _ in range(min(at_most, len(self._outdated))):
            self._recount(self._outdated.pop())
        return not self._outdated

    def by_model(self) -> Mapping[str, Tally]:
        """The sums over all nodes."""
        return self._sums

    def groups(self) -> Mapping[str, Groups]:
        """The groups of free linked cards of all nodes; none of them is empty."""
        return self._groups

    def _recount(self, node: str) -> None:
        before, now = self._nodes.pop(node, _EMPTY), self._count(node)
        if now.by_model:
            self._nodes[node] = now
        for model in {*before.by_model, *now.by_model}:
            left = self._sums.get(model, Tally()).plus(before.by_model.get(model, Tally()), -1)
            self._sums[model] = left.plus(now.by_model.get(model, Tally()))
            if not self._sums[model].physical:
                del self._sums[model]
        for model in {*before.groups, *now.groups}:
            groups = self._groups.setdefault(model, Counter())
            groups.update(now.groups.get(model, _NO_GROUPS))
            groups.subtract(before.groups.get(model, _NO_GROUPS))
            # Sizes of which there are none any more go.
            self._groups[model] = +groups
            if model not in self._sums:
                del self._groups[model]

    def _count(self, node: str) -> NodeCount:
        cluster = self._cluster
        devices = [
            device
            for pool in cluster.inventory.pools(cluster.node(node))
            if pool.id.driver == cluster.driver
            for device in pool.devices
        ]
        return count(devices, cluster.ledger.use())


def count(devices: Iterable[PooledDevice], use: Mapping[DeviceId, DeviceUse]) -> NodeCount:
    """The cards behind the devices of one node."""
    devices = list(devices)
    in_parts: dict[str, int] = {}
    for device in devices:
        parent = _text(device, names.PARENT_UUID)
        if parent is not None:
            in_parts[parent] = in_parts.get(parent, 0) + _committed(device, use)
    sums: dict[str, Tally] = {}
    groups: dict[str, Counter[str]] = {}
    for device in devices:
        if _text(device, names.PARENT_UUID) is not None:
            continue
        taken = in_parts.get(_text(device, names.UUID) or "")
        tally = _tally(device, use.get(device.id, _UNUSED), taken)
        model = _text(device, names.PRODUCT_NAME) or ""
        sums[model] = sums.get(model, Tally()).plus(tally)
        if tally.allocatable and not tally.committed:
            groups.setdefault(model, Counter())[_text(device, names.NVLINK_GROUP) or ""] += 1
    return NodeCount(sums, {model: Counter(sizes.values()) for model, sizes in groups.items()})


def _tally(card: PooledDevice, use: DeviceUse, taken_in_parts: int | None) -> Tally:
    """One card; `taken_in_parts` is the memory of its MIG devices that are held, if it has any."""
    memory = _memory(card)
    taken = min(_of_memory(card, use) + (taken_in_parts or 0), memory)
    held = use.exclusive or bool(use.shares) or bool(taken_in_parts)
    kept_away = any(taint.effect in _KEEPS_AWAY for taint in card.taints)
    free = 0 if kept_away or use.exclusive else memory - taken
    return Tally(
        physical=1,
        allocatable=int(held or not kept_away),
        committed=int(held),
        memory=memory,
        memory_committed=taken,
        free=free,
        free_whole=0 if held else free,
    )


def _committed(device: PooledDevice, use: Mapping[DeviceId, DeviceUse]) -> int:
    return _of_memory(device, use.get(device.id, _UNUSED))


def _of_memory(device: PooledDevice, use: DeviceUse) -> int:
    if use.exclusive:
        return _memory(device)
    amount = use.consumed.get(names.MEMORY)
    return amount.ceil() if amount is not None else 0


def _memory(device: PooledDevice) -> int:
    capacity = device.device.capacity.get(names.MEMORY)
    return capacity.value.ceil() if capacity is not None else 0


def _text(device: PooledDevice, name: str) -> str | None:
    attribute = device.device.attributes.get(name)
    return attribute.string if attribute is not None else None
