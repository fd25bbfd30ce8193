"""Whether a pool's shared counters cover what is in use together with these devices (KEP-4815).

A part of the last line of defence (`driver.controller.results`): it looks at no node, request or
selector. Two partitions of one card are two devices, and only their counters say that they are
made of the same.
"""

from collections.abc import Iterable, Mapping

from driver.allocator.device import PooledDevice
from driver.allocator.inventory import Inventory
from driver.allocator.pools import Published
from driver.model.allocation import DeviceUse
from driver.model.ids import DeviceId, PoolId

# A counter set of a pool, and a counter in it.
_Counter = tuple[str, str]


def overdrawn(
    drawing: Iterable[PooledDevice], use: Mapping[DeviceId, DeviceUse], inventory: Inventory
) -> str | None:
    """Which counter these devices would overdraw; None when there is enough of all.

    A device that is in use but published no more draws nothing, as for the scheduler.
    """
    mine: dict[PoolId, set[DeviceId]] = {}
    for device in drawing:
        mine.setdefault(device.pool, set()).add(device.id)
    for pool_id, devices in mine.items():
        reason = _overdrawn(pool_id, devices, use, inventory.published(pool_id))
        if reason is not None:
            return reason
    return None


def _overdrawn(
    pool_id: PoolId,
    mine: set[DeviceId],
    use: Mapping[DeviceId, DeviceUse],
    slices: tuple[Published, ...],
) -> str | None:
    # Of a device or set that several generations describe, the newest counts.
    devices = {device.id: device for one in slices for device in one.devices}
    wanted = _draws(devices[one] for one in mine if one in devices)
    taken = _draws(one for one in devices.values() if one.id in use and one.id not in mine)
    there = {
        (group.name, name): counter.value.nano
        for one in slices
        for group in one.slice.spec.shared_counters
        for name, counter in group.counters.items()
    }
    for counter, amount in wanted.items():
        if amount + taken.get(counter, 0) > there.get(counter, 0):
            return f"pool {pool_id} has too little left of counter {'/'.join(counter)}"
    return None


def _draws(devices: Iterable[PooledDevice]) -> dict[_Counter, int]:
    """What these devices draw from each counter, in nano units."""
    total: dict[_Counter, int] = {}
    for device in devices:
        for part in device.device.consumes_counters:
            for name, counter in part.counters.items():
                key = part.counter_set, name
                total[key] = total.get(key, 0) + counter.value.nano
    return total
