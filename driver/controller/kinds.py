"""Which nodes are the same for a question: equal devices in equal use, whatever their names.

Clusters are built of many equal nodes, and most of them are in one of a few states, so that a
question has to be answered for each state only once.
"""

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from itertools import count
from typing import TypeVar

from driver.allocator.demand import Rules
from driver.allocator.device import PooledDevice
from driver.allocator.pools import Pool
from driver.controller.cluster import Cluster
from driver.controller.looks import Aspect, aspect, body, look_at
from driver.controller.nominations import Together
from driver.model.allocation import DeviceUse
from driver.model.core import Node
from driver.model.ids import DeviceId
from driver.model.resourceclaim import ResourceClaim

T = TypeVar("T")
# Forget what was worked out beyond that: most of it is of things that are there no longer.
_MOST_NUMBERS = 100_000
_MOST_ASPECTS = 64

# Numbers of nodes, with the pools that they were worked out of; None: this node is like no other.
_OfNodes = dict[str, tuple[tuple[Pool, ...], int | None]]


class Makes:
    """What questions have worked out of the nodes and can share, because it depends on none.

    Equal things have the same number; different ones never have, even when all is forgotten.
    """

    def __init__(self) -> None:
        self._fresh = count()
        self._numbers: dict[Hashable, int] = {}
        self._bodies: _OfNodes = {}
        self._looks: OrderedDict[Aspect, _OfNodes] = OrderedDict()
        self._states: dict[str, tuple[int, tuple[int | None, ...]]] = {}

    def number(self, what: Hashable) -> int:
        """The number of this."""
        known = self._numbers.get(what)
        if known is None:
            if len(self._numbers) >= _MOST_NUMBERS:
                self._numbers.clear()
            known = self._numbers[what] = next(self._fresh)
        return known

    def body(self, name: str, pools: tuple[Pool, ...], cluster: Cluster) -> int | None:
        """The number of what counts of the node's devices whatever is asked."""
        known = self._bodies.get(name)
        if known is None or known[0] is not pools:
            _make_room(self._bodies, cluster)
            made = body(pools, self._make)
            known = self._bodies[name] = pools, None if made is None else self.number(made)
        return known[1]

    def _make(self, device: PooledDevice) -> int:
        return self.number(_published(device))

    def looks(self, seen: Aspect) -> _OfNodes:
        """The looks of nodes for all questions that pay attention to the same."""
        known = self._looks.setdefault(seen, {})
        self._looks.move_to_end(seen)
        if len(self._looks) > _MOST_ASPECTS:
            self._looks.popitem(last=False)
        return known

    def state(
        self, node: Node, pools: tuple[Pool, ...], cluster: Cluster
    ) -> tuple[int | None, ...]:
        """What is in use of the devices of the node, or expected to be, and their taints."""
        name = node.metadata.name
        version = cluster.changes.at(name)
        known = self._states.get(name)
        if known is None or known[0] != version:
            _make_room(self._states, cluster)
            usage = Together(cluster.ledger.use(), cluster.nominations.use())
            known = self._states[name] = version, self.state_under(usage, pools)
        return known[1]

    def state_under(
        self, usage: Mapping[DeviceId, DeviceUse], pools: tuple[Pool, ...]
    ) -> tuple[int | None, ...]:
        """The same where so much is in use: a number for each device that is not simply free."""
        devices = (device for pool in pools for device in pool.devices)
        states = [_state(device, usage.get(device.id)) for device in devices]
        return tuple([None if state is None else self.number(state) for state in states])


class Kinds:
    """Tells the kind of a node for these claims, as long as the classes stay what they are."""

    def __init__(self, claims: tuple[ResourceClaim, ...], cluster: Cluster, makes: Makes) -> None:
        self._cluster = cluster
        self._makes = makes
        self._aspect = aspect(claims, cluster.classes)
        self._looks = makes.looks(self._aspect)

    def of(self, node: Node, *, unused: bool = False) -> Hashable | None:
        """Equal for nodes on which the claims get equal devices; None: this one is special.

        `unused`: as if no device of it were in use. Raises `TooDearError`.
        """
        cluster = self._cluster
        pools = cluster.inventory.pools(node)
        look = self._look(node.metadata.name, pools)
        if look is None:
            return None
        makes = self._makes
        state = makes.state_under({}, pools) if unused else makes.state(node, pools, cluster)
        return look, state, Rules.of(cluster.features, node).may_skip_node_operations

    def _look(self, name: str, pools: tuple[Pool, ...]) -> int | None:
        known = self._looks.get(name)
        if known is None or known[0] is not pools:
            _make_room(self._looks, self._cluster)
            made = self._makes.body(name, pools, self._cluster)
            seen = None if made is None else look_at(pools, self._aspect)
            number = None if seen is None else self._makes.number((made, seen))
            known = self._looks[name] = pools, number
        return known[1]


def _make_room(by_node: dict[str, T], cluster: Cluster) -> None:
    """Nodes come and go under ever new names."""
    if len(by_node) > 2 * len(cluster.nodes) + 64:
        by_node.clear()


def _published(device: PooledDevice) -> Hashable:
    published = device.device
    return (
        device.id.driver,
        device.traits.model,
        device.shareable,
        tuple(published.capacity.items()),
        published.binding_conditions,
        published.binding_failure_conditions,
        tuple(
            (one.counter_set, tuple(one.counters.items()), one.compatibility_groups)
            for one in published.consumes_counters
        ),
        device.slice.spec.skip_node_operations,
    )


def _state(device: PooledDevice, use: DeviceUse | None) -> Hashable | None:
    if use is None:
        return device.taints or None
    amounts = tuple([(name, one.nano) for name, one in sorted(use.consumed.items())])
    return device.taints, use.exclusive, len(use.shares), amounts
