"""The cluster's nodes with their cards, and the line that sums them up.

Made from what the watches or a listing put into an inventory; it asks nobody.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from driver.allocator.device import PooledDevice
from driver.allocator.inventory import Inventory
from driver.cli.fleet.capacity import Capacities, in_use
from driver.cli.fleet.cards import cards
from driver.cli.fleet.holders import Holders, holders
from driver.cli.fleet.report import Card, Matrix, NodeCards, Total
from driver.model import names
from driver.model.core import Node, Pod
from driver.model.resourceclaim import ResourceClaim

_DIGITS = 1


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a cluster: nodes by name, pods of ours, claims, devices."""

    driver: str
    inventory: Inventory
    nodes: Mapping[str, Node]
    claims: Collection[ResourceClaim]
    pods: Collection[Pod]


def matrix(state: State, *, group_by: str = "") -> Matrix:
    """All nodes that have cards, by group and name."""
    held, awaited = holders(state.claims), nominated(state.pods)
    rows = [
        row(state, node, held, awaited, group_by=group_by)
        for node in sorted(state.nodes.values(), key=lambda one: one.metadata.name)
    ]
    shown = sorted((one for one in rows if one is not None), key=lambda one: one.group)
    return Matrix(
        driver=state.driver,
        group_by=group_by,
        nodes=tuple(shown),
        total=total(shown, state.pods),
    )


def row(
    state: State, node: Node, held: Holders, awaited: Mapping[str, int], *, group_by: str = ""
) -> NodeCards | None:
    """One node; None when the driver has nothing on it."""
    pools = [one for one in state.inventory.pools(node) if one.id.driver == state.driver]
    if not pools:
        return None
    devices: list[PooledDevice] = [device for pool in pools for device in pool.devices]
    found = cards(devices, held)
    problems = [
        f"pool {pool.id.pool}: {pool.invalid or 'some of its slices are missing'}"
        for pool in pools
        if not pool.usable
    ]
    if node.spec.unschedulable:
        problems.append("node is cordoned")
    return NodeCards(
        node=node.metadata.name,
        group=node.metadata.labels.get(group_by, "") if group_by else "",
        cards=found,
        free=sum(card.open for card in found),
        largest_free=largest(found),
        fragmentation=fragmentation(found),
        pending=awaited.get(node.metadata.name, 0),
        note="; ".join(problems),
    )


def total(rows: Iterable[NodeCards], pods: Iterable[Pod]) -> Total:
    """The line below all rows."""
    made = Sum()
    for one in rows:
        made.add(one)
    for pod in pods:
        made.wait(pod)
    return made.total()


class Sum:
    """The line below all rows, while they are being made."""

    def __init__(self) -> None:
        self._numbers: Counter[str] = Counter()
        self._largest = 0
        self._left = _Left()
        self._capacities = Capacities()

    def add(self, row: NodeCards) -> None:
        """Count one more row."""
        self._numbers.update(
            nodes=1,
            cards=len(row.cards),
            free=row.free,
            in_use=sum(map(in_use, row.cards)),
            tainted=sum(bool(card.taints) for card in row.cards),
        )
        self._largest = max(self._largest, row.largest_free)
        for card in row.cards:
            self._left.add(card)
        self._capacities.add(row.cards)

    def wait(self, pod: Pod) -> None:
        """Count one more pod, if it waits."""
        self._numbers[_waits(pod)] += 1

    def total(self) -> Total:
        """The numbers so far."""
        numbers = self._numbers
        return Total(
            nodes=numbers["nodes"],
            cards=numbers["cards"],
            free=numbers["free"],
            in_use=numbers["in_use"],
            tainted=numbers["tainted"],
            largest_free=self._largest,
            fragmentation=self._left.fragmentation(),
            gated=numbers["gated"],
            nominated=numbers["nominated"],
            waiting=numbers["waiting"],
            capacity=self._capacities.told(),
        )


def nominated(pods: Iterable[Pod]) -> Counter[str]:
    """How many pods wait for the scheduler with a nomination, by node."""
    return Counter(filter(None, map(nomination, pods)))


def nomination(pod: Pod) -> str:
    """The node for which a pod waits with a nomination; empty when it does not."""
    return pod.status.nominated_node_name if _waits(pod) == "nominated" else ""


def largest(found: Iterable[Card]) -> int:
    """The most open cards of one NVLink group; without groups, of all together."""
    return max(Counter(card.nvlink_group for card in found if card.open).values(), default=0)


def fragmentation(found: Iterable[Card]) -> float:
    """Percent of the free memory that is on cards in use: no whole card can be made of it.

    The metric of `quadrant simulate` by that name.
    """
    left = _Left()
    for card in found:
        left.add(card)
    return left.fragmentation()


class _Left:
    """What is free of some cards, and how much of that is on cards of which nothing is in use."""

    def __init__(self) -> None:
        self._all = self._whole = 0

    def add(self, card: Card) -> None:
        free = _left(card)
        self._all += free
        self._whole += free if card.use == "free" else 0

    def fragmentation(self) -> float:
        return round(100 - 100 * self._whole / self._all, _DIGITS) if self._all else 0.0


def _left(card: Card) -> int:
    """What is free of a card, in MiB; one that publishes no memory counts as one."""
    if card.use == "whole":
        return 0
    if not card.memory_mib:
        return int(card.use == "free")
    return max(0, card.memory_mib - card.memory_used_mib)


def _waits(pod: Pod) -> str:
    """How a pod waits, if it does: gated, nominated or waiting."""
    if pod.spec.node_name or pod.finished:
        return ""
    if any(gate.name == names.PLACEMENT_GATE for gate in pod.spec.scheduling_gates):
        return "gated"
    return "nominated" if pod.status.nominated_node_name else "waiting"


def by_group(rows: Iterable[NodeCards]) -> Iterator[tuple[str, list[NodeCards]]]:
    """The rows of each group, in order."""
    found: dict[str, list[NodeCards]] = {}
    for one in rows:
        found.setdefault(one.group, []).append(one)
    yield from found.items()
