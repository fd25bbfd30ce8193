"""Re-making the results of an allocation for other devices, and checking them one last time.

Pure. What a result says of its device follows the device (pool, name, consumed capacity, share,
binding conditions); everything else in it stays as the scheduler wrote it.
"""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from driver.allocator.inventory import Inventory
from driver.controller.book import total
from driver.controller.overdraft import overdrawn
from driver.model.allocation import DeviceUse
from driver.model.ids import DeviceId
from driver.model.resourceclaim import DeviceRequestAllocationResult
from driver.model.resourceslice import Device
from driver.wire.encode import builtins
from driver.wire.patch import Operation, pointer, replace

Result = DeviceRequestAllocationResult


def replacements(old: Iterable[Result], new: Iterable[Result]) -> list[Result]:
    """For each old result, the new one of the same request that takes its place.

    A device that stays chosen keeps its place, so that as little as possible changes.
    Raises `ValueError` when a request has another number of results than before.
    """
    old, waiting = list(old), list(new)
    if sorted(one.request for one in old) != sorted(one.request for one in waiting):
        raise ValueError("the new results do not serve the same requests as the old ones")
    chosen: list[Result | None] = [_take(waiting, result, same_device=True) for result in old]
    return [found or _must_take(waiting, result) for found, result in zip(chosen, old, strict=True)]


def _take(waiting: list[Result], wanted: Result, *, same_device: bool) -> Result | None:
    for index, result in enumerate(waiting):
        if result.request != wanted.request:
            continue
        if not same_device or result.device_id() == wanted.device_id():
            return waiting.pop(index)
    return None


def _must_take(waiting: list[Result], wanted: Result) -> Result:
    found = _take(waiting, wanted, same_device=False)
    if found is None:
        raise ValueError(f"no result is left for request {wanted.request}")
    return found


def remade(old: Result, chosen: Result, share_id: Callable[[], str]) -> Result:
    """The result to store: `chosen` in the place of `old`, of which there are no unknown fields.

    A share keeps its ID; `share_id` makes one where the old device was not shareable.
    """
    return msgspec.structs.replace(
        old,
        driver=chosen.driver,
        pool=chosen.pool,
        device=chosen.device,
        share_id=None if chosen.share_id is None else old.share_id or share_id(),
        consumed_capacity=chosen.consumed_capacity,
        binding_conditions=chosen.binding_conditions,
        binding_failure_conditions=chosen.binding_failure_conditions,
        skip_node_operations=chosen.skip_node_operations,
    )


def patch(before: Iterable[Result], after: Iterable[Result]) -> list[Operation]:
    """What turns the results under review into these; empty when they are the same."""
    place = "/status/allocation/devices/results"
    return [
        replace(place + pointer(index), builtins(new))
        for index, (old, new) in enumerate(zip(before, after, strict=True))
        if old != new
    ]


def overbooked(
    results: Iterable[Result],
    use: Mapping[DeviceId, DeviceUse],
    inventory: Inventory,
) -> str | None:
    """Why these results must not be stored beside what is in use; None when they may.

    This is the last line of defence and knows nothing of requests or selectors: a device is given
    away whole and once, or in shares that add up to no more than it has, and the counters that it
    shares with others cover them all.
    """
    by_device: dict[DeviceId, list[Result]] = {}
    for result in results:
        by_device.setdefault(result.device_id(), []).append(result)
    found = {device: inventory.find(device) for device in by_device}
    for device, part in by_device.items():
        published = found[device]
        reason = _overbooked(device, part, use.get(device), published.device if published else None)
        if reason is not None:
            return reason
    drawing = (
        published
        for device, part in by_device.items()
        if (published := found[device]) is not None
        and published.device.consumes_counters
        and not all(result.admin_access for result in part)
    )
    return overdrawn(drawing, use, inventory)


def _overbooked(
    name: DeviceId, part: list[Result], others: DeviceUse | None, device: Device | None
) -> str | None:
    mine = total(part)
    if mine is None:
        return None
    whole = [result for result in part if result.share_id is None and not result.admin_access]
    if others is not None and (others.exclusive or mine.exclusive):
        return f"device {name} is held by another claim"
    if len(whole) > 1 or (whole and mine.shares):
        return f"device {name} would be given twice to the same claim"
    if mine.exclusive:
        return None
    if device is None:
        return f"device {name} is not published, so its capacity is unknown"
    for capacity, amount in mine.consumed.items():
        before = others.consumed.get(capacity) if others is not None else None
        wanted = amount if before is None else before + amount
        published = device.capacity.get(capacity)
        if published is None or published.value < wanted:
            return f"device {name} has too little {capacity} left: {wanted} would be in use"
    return None
