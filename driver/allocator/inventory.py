"""Which devices the cluster has: the slices and taint rules as the watches tell them.

Kept up to date change by change. What a node sees is worked out when it is asked for and kept
until one of its slices changes. Knows nothing of claims or of what is in use. Not for use from
several threads.
"""

from collections.abc import Callable, Mapping

from driver.allocator.device import PooledDevice
from driver.allocator.pools import Pool, Published, in_order, pool_on
from driver.model.allocation import Features
from driver.model.core import Node
from driver.model.deviceclass import DeviceTaintRule
from driver.model.ids import DeviceId, PoolId
from driver.model.resourceslice import ResourceSlice


class _Members:
    """The slices of one pool, and the one node that they are for, if it is only one."""

    __slots__ = ("by_slice", "local_to", "seen")

    def __init__(self) -> None:
        self.by_slice: dict[str, Published] = {}
        # The pool as a node with these labels saw it last.
        self.seen: dict[str, tuple[Mapping[str, str], Pool | None]] = {}
        # The only node that can see the pool; None where that takes a look at each slice.
        self.local_to: str | None = None

    def changed(self) -> None:
        """Take note of another set of slices."""
        self.seen.clear()
        nodes = {one.slice.spec.node_name for one in self.by_slice.values()}
        self.local_to = nodes.pop() if len(nodes) == 1 else None


class _Sight:
    """What one node with these labels saw last; dropped with the next change that it may see."""

    __slots__ = ("labels", "pools")

    def __init__(self, labels: Mapping[str, str], pools: tuple[Pool, ...]) -> None:
        self.labels = labels
        self.pools = pools


class Inventory:
    """All slices of the cluster, seen node by node. Every change is idempotent.

    `touched` is told which node may see something else now; None stands for all nodes.
    """

    def __init__(
        self, features: Features, touched: Callable[[str | None], None] | None = None
    ) -> None:
        self.features = features
        self._touched = touched
        self._pools: dict[PoolId, _Members] = {}
        self._pool_of_slice: dict[str, PoolId] = {}
        # Pools by the one node that sees them, and those that more nodes may see.
        self._local: dict[str, dict[PoolId, None]] = {}
        self._wide: dict[PoolId, None] = {}
        self._sights: dict[str, _Sight] = {}
        self._rules: dict[str, DeviceTaintRule] = {}

    def put_slice(self, published: ResourceSlice) -> None:
        """A slice was added or changed."""
        name = published.metadata.name
        pool_id = PoolId(published.spec.driver, published.spec.pool.name)
        if self._pool_of_slice.get(name, pool_id) != pool_id:
            self.remove_slice(name)
        members = self._pools.setdefault(pool_id, _Members())
        known = members.by_slice.get(name)
        if known is not None and known.slice.spec == published.spec:
            return
        entry = Published(published, self.features)
        self._taint(entry.devices)
        self._pool_of_slice[name] = pool_id
        members.by_slice[name] = entry
        self._changed(pool_id, members)

    def remove_slice(self, name: str) -> None:
        """A slice was deleted."""
        pool_id = self._pool_of_slice.pop(name, None)
        if pool_id is None:
            return
        members = self._pools[pool_id]
        del members.by_slice[name]
        self._changed(pool_id, members)
        if not members.by_slice:
            del self._pools[pool_id]

    def put_taint_rule(self, rule: DeviceTaintRule) -> None:
        """A taint rule was added or changed; it counts as a taint of the devices it selects."""
        before = self._rules.get(rule.metadata.name)
        self._rules[rule.metadata.name] = rule
        for concerned in (before, rule):
            if concerned is not None:
                self._retaint(concerned)

    def remove_taint_rule(self, name: str) -> None:
        """A taint rule was deleted."""
        rule = self._rules.pop(name, None)
        if rule is not None:
            self._retaint(rule)

    def nodes(self) -> tuple[str, ...]:
        """The nodes that have pools of their own, by name."""
        return tuple(sorted(self._local))

    def pools(self, node: Node) -> tuple[Pool, ...]:
        """What the node can allocate from, in the order in which the scheduler tries it.

        The same objects as long as nothing the node sees has changed.
        """
        name, labels = node.metadata.name, node.metadata.labels
        sight = self._sights.get(name)
        if sight is not None and sight.labels == labels:
            return sight.pools
        near = (*self._local.get(name, ()), *self._wide)
        if not near:
            # Nothing is kept: nodes without devices come and go under ever new names.
            return ()
        seen = (self._pool(node, pool_id) for pool_id in near)
        pools = in_order(pool for pool in seen if pool is not None)
        self._sights[name] = _Sight(labels, pools)
        return pools

    def find(self, device_id: DeviceId) -> PooledDevice | None:
        """The device as its newest slice describes it; None when it is not published."""
        members = self._pools.get(PoolId(device_id.driver, device_id.pool))
        if members is None:
            return None
        found: PooledDevice | None = None
        for entry in members.by_slice.values():
            device = entry.find(device_id.device)
            if device is not None and (found is None or _generation(device) > _generation(found)):
                found = device
        return found

    def published(self, pool_id: PoolId) -> tuple[Published, ...]:
        """All slices of a pool, whatever node they are for, the newest generation last."""
        members = self._pools.get(pool_id)
        found = members.by_slice.values() if members is not None else ()
        return tuple(sorted(found, key=lambda one: one.slice.spec.pool.generation))

    def _pool(self, node: Node, pool_id: PoolId) -> Pool | None:
        members = self._pools[pool_id]
        name, labels = node.metadata.name, node.metadata.labels
        known = members.seen.get(name)
        if known is not None and known[0] == labels:
            return known[1]
        pool = pool_on(node, pool_id, members.by_slice.values(), self.features)
        if pool is not None and pool.usable and not pool.devices:
            # A healthy pool without devices for the node changes no decision there.
            pool = None
        members.seen[name] = labels, pool
        return pool

    def _changed(self, pool_id: PoolId, members: _Members) -> None:
        before = members.local_to
        members.changed()
        now = members.local_to
        if before is not None:
            self._forget(before, pool_id)
        if now is not None:
            self._forget(now, pool_id)
            self._local.setdefault(now, {})[pool_id] = None
        if pool_id in self._wide or (now is None and members.by_slice):
            self._sights.clear()
            self._tell(None)
        else:
            for node_name in {before, now} - {None}:
                self._tell(node_name)
        self._wide.pop(pool_id, None)
        if now is None and members.by_slice:
            self._wide[pool_id] = None

    def _tell(self, node_name: str | None) -> None:
        if self._touched is not None:
            self._touched(node_name)

    def _forget(self, node_name: str, pool_id: PoolId) -> None:
        """The node may see the pool no longer, or otherwise than before."""
        self._sights.pop(node_name, None)
        own = self._local.get(node_name)
        if own is not None:
            own.pop(pool_id, None)
            if not own:
                del self._local[node_name]

    def _retaint(self, rule: DeviceTaintRule) -> None:
        selector = rule.spec.device_selector
        if selector is None:
            return
        for pool_id, members in self._pools.items():
            if selector.driver in {None, pool_id.driver} and selector.pool in {None, pool_id.pool}:
                for entry in members.by_slice.values():
                    self._taint(entry.devices)
                self._tell(members.local_to)

    def _taint(self, devices: tuple[PooledDevice, ...]) -> None:
        if not self._rules and all(d.taints is d.device.taints for d in devices):
            return
        for device in devices:
            ruled = tuple(
                rule.spec.taint
                for _, rule in sorted(self._rules.items())
                if _selects(rule, device.id)
            )
            device.taints = (*device.device.taints, *ruled)


def _generation(device: PooledDevice) -> int:
    return device.slice.spec.pool.generation


def _selects(rule: DeviceTaintRule, device: DeviceId) -> bool:
    # The API: an empty selector means all devices, a missing one means none.
    selector = rule.spec.device_selector
    return selector is not None and (
        selector.driver in {None, device.driver}
        and selector.pool in {None, device.pool}
        and selector.device in {None, device.device}
    )
