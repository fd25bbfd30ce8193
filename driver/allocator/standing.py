"""How each device stands during one call: what was in use before, and what the search has placed.

Knows nothing of selectors or constraints.
"""

from collections.abc import Iterable, Mapping

from driver.allocator.capacity import Portion
from driver.allocator.condition import UNUSED
from driver.allocator.counters import PoolCounters
from driver.allocator.device import PooledDevice
from driver.allocator.pools import Pool
from driver.allocator.problem import Problem
from driver.model.allocation import DeviceUse
from driver.model.ids import DeviceId, PoolId


class Standing:
    """One device in one call.

    `order` is its place in the scheduler's order. `holders` are the claims that hold it whole, or
    look at it with admin access, within this call; `shares` and `consumed` what this call took of
    a shareable device.
    """

    __slots__ = ("condition", "consumed", "device", "excluded", "holders", "order", "shares")

    def __init__(self, device: PooledDevice, order: int, use: DeviceUse, *, excluded: bool) -> None:
        self.device = device
        self.order = order
        self.condition = device.under(use)
        self.excluded = excluded
        self.holders: list[int] = []
        self.shares = 0
        self.consumed: dict[str, int] = {}

    @property
    def touched(self) -> bool:
        """Whether this call has placed anything on it."""
        return bool(self.holders or self.shares)

    @property
    def is_shared(self) -> bool:
        """Whether somebody has a share of it, from before or by this call."""
        if not self.device.shareable:
            return False
        use = self.condition.use
        return bool(self.shares or use.shares or use.consumed)

    def open_to(self, claim: int, *, admin: bool) -> bool:
        """Whether it may be taken at all: admin access may look at what others hold."""
        if self.excluded:
            return False
        if admin:
            return self.device.shareable or claim not in self.holders
        if self.holders or self.condition.use.exclusive:
            return False
        # Kubernetes would give away a whole device of which shares are left from the time when it
        # was shareable; that is never done here.
        return self.device.shareable or not self.condition.in_use

    def short_of(self, portion: Portion) -> str | None:
        """The first capacity that others' use and this call leave too little of; None if none."""
        left, now = self.condition.left(), self.consumed
        for name, amount in portion.nanos.items():
            if amount > left[name] - now.get(name, 0):
                return name
        return None

    def add_share(self, nanos: Mapping[str, int]) -> None:
        """Place one share of so much, in nano units."""
        self.shares += 1
        for name, amount in nanos.items():
            self.consumed[name] = self.consumed.get(name, 0) + amount

    def remove_share(self, nanos: Mapping[str, int]) -> None:
        """Take one share back."""
        self.shares -= 1
        for name, amount in nanos.items():
            self.consumed[name] -= amount


class Book:
    """The standings of all devices that a call touches, and the counters of their pools."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._standings: dict[PooledDevice, Standing] = {}
        self._counters: dict[PoolId, PoolCounters] = {}
        self._pools: dict[PoolId, Pool] = {pool.id: pool for pool in problem.pools}
        self._by_id: dict[DeviceId, Standing] | None = None

    def standing(self, device: PooledDevice, order: int) -> Standing:
        """How the device stands, the same object each time it is asked for.

        `order` is its place in the scheduler's order of all devices of the node.
        """
        known = self._standings.get(device)
        if known is None:
            problem = self._problem
            known = self._standings[device] = Standing(
                device,
                order,
                problem.usage.get(device.id, UNUSED),
                excluded=bool(problem.excluded) and device.id in problem.excluded,
            )
        return known

    def find(self, device_id: DeviceId) -> Standing | None:
        """The standing of a device that is known by name only."""
        if self._by_id is None:
            pools = self._problem.pools
            devices = [device for pool in pools for device in pool.asked]
            # Devices that are not even asked here come after those that are.
            devices += [one for pool in pools for one in pool.others if one not in pool.asked]
            # Slices of other nodes may repeat a name; the device of this node is the one meant.
            self._by_id = {
                device.id: self.standing(device, order)
                for order, device in reversed([*enumerate(devices)])
            }
        return self._by_id.get(device_id)

    def covers(self, standing: Standing) -> bool:
        """Whether the counters of its pool cover the device as well."""
        if not standing.device.device.consumes_counters:
            return True
        covered = self.take_counters(standing)
        if covered:
            self.give_back_counters(standing)
        return covered

    def take_counters(self, standing: Standing) -> bool:
        """Draw the device's counters, unless a share of it has drawn them already."""
        if standing.is_shared:
            return True
        return self._counters_of(standing.device.pool).take(standing.device)

    def give_back_counters(self, standing: Standing) -> None:
        """Undo `take_counters`; called when the placement itself has been taken back."""
        if not standing.is_shared:
            self._counters_of(standing.device.pool).give_back(standing.device)

    def _counters_of(self, pool_id: PoolId) -> PoolCounters:
        known = self._counters.get(pool_id)
        if known is None:
            pool = self._pools[pool_id]
            known = self._counters[pool_id] = PoolCounters(
                pool,
                list(self._in_use((*pool.devices, *pool.others))),
                groups=self._problem.features.compatibility_groups,
            )
        return known

    def _in_use(self, devices: Iterable[PooledDevice]) -> Iterable[PooledDevice]:
        for device in devices:
            use = self._problem.usage.get(device.id, UNUSED)
            if device.device.consumes_counters and (use.exclusive or use.shares or use.consumed):
                yield device
