"""Whether the shared counters of a pool still cover one more device (KEP-4815, KEP-5963).

Source of the rules: Kubernetes' allocator. As there, every counter of the pool must stay at zero
or above, so that one over-drawn set blocks all devices of the pool that draw from any.
"""

from driver.allocator.device import PooledDevice
from driver.allocator.pools import Pool


class PoolCounters:
    """What is left of a pool's counters, and who shares its counter sets, during one call."""

    def __init__(self, pool: Pool, in_use: list[PooledDevice], *, groups: bool) -> None:
        self._left = {
            (group.name, name): counter.value.nano
            for group in pool.counter_sets.values()
            for name, counter in group.counters.items()
        }
        self._groups = groups
        self._members: dict[str, list[frozenset[str]]] = {}
        for device in in_use:
            self._charge(device, sign=1)

    def take(self, device: PooledDevice) -> bool:
        """Draw what the device needs; false, and nothing drawn, when that is not there."""
        if not self._admits(device):
            return False
        self._charge(device, sign=1)
        if self.overdrawn():
            self.give_back(device)
            return False
        return True

    def give_back(self, device: PooledDevice) -> None:
        """Undo the last `take` of this device."""
        self._charge(device, sign=-1)

    def overdrawn(self) -> bool:
        """Whether some counter is below zero."""
        return any(left < 0 for left in self._left.values())

    def _charge(self, device: PooledDevice, *, sign: int) -> None:
        for use in device.device.consumes_counters:
            for name, counter in use.counters.items():
                if (use.counter_set, name) in self._left:
                    self._left[use.counter_set, name] -= sign * counter.value.nano
            members = self._members.setdefault(use.counter_set, [])
            groups = frozenset(use.compatibility_groups)
            if sign > 0:
                members.append(groups)
            else:
                members.remove(groups)

    def _admits(self, device: PooledDevice) -> bool:
        """Whether the device may share its counter sets with those that are on them already.

        Devices without groups share only with devices without groups; others need one group that
        all on the set have.
        """
        if not self._groups:
            return True
        for use in device.device.consumes_counters:
            members = self._members.get(use.counter_set)
            if not members:
                continue
            own = frozenset(use.compatibility_groups)
            alone = not own and not any(members)
            if not alone and not own.intersection(*members):
                return False
        return True
