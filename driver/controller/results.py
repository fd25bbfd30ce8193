"""Re-making the results of an allocation for other devices, and checking them one last time.

Pure. What a result says of its device follows the device (pool, name, consumed capacity, share,
binding conditions); everything else in it stays as the scheduler wrote it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from driver.allocator.inventory import Inventory
from driver.controller.book import total
from driver.controller.overdraft import overdrawn
from driver.model.allocation import DeviceUse
from driver.model.ids import DeviceId
from driver.model.resourceclaim import DeviceRequestAllocationResult
from driver.model.resourceslice import Device
from driver.wire.decode import convert
from driver.wire.encode import builtins
from driver.wire.patch import Operation, pointer, replace

Result = DeviceRequestAllocationResult
# The members of a result that follow from its device.
_OF_THE_DEVICE = (
    "driver",
    "pool",
    "device",
    "consumedCapacity",
    "bindingConditions",
    "bindingFailureConditions",
    "skipNodeOperations",
)


def replacements(old: Iterable[Result], new: Iterable[Result]) -> list[Result]:
    """For each old result, the new one of the same request that takes its place.

    A device that stays chosen keeps its place, so that as little as possible changes.
    Raises `ValueError` when a request has another number of results than before.
    """
    old, waiting = list(old), list(new)
    if Counter(result.request for result in old) != Counter(result.request for result in waiting):
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


def remade(raw: Mapping[str, Any], chosen: Result, share_id: Callable[[], str]) -> Result:
    """The result to store: `chosen`, in the place of the one whose stored form is `raw`.

    A share keeps its ID; `share_id` makes one where the old device was not shareable.
    """
    result = {name: value for name, value in raw.items() if name not in _OF_THE_DEVICE}
    new = builtins(chosen)
    result.update({name: new[name] for name in _OF_THE_DEVICE if name in new})
    if chosen.share_id is None:
        result.pop("shareID", None)
    elif "shareID" not in result:
        result["shareID"] = share_id()
    return convert(Result, result)


def patch(before: Iterable[Mapping[str, Any]], after: Iterable[Result]) -> list[Operation]:
    """What turns the results under review into these; empty when they are the same."""
    place = "/status/allocation/devices/results"
    return [
        replace(place + pointer(index), builtins(new))
        for index, (raw, new) in enumerate(zip(before, after, strict=True))
        if convert(Result, dict(raw)) != new
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
    results = list(results)
    by_device: dict[DeviceId, list[Result]] = {}
    for result in results:
        by_device.setdefault(result.device_id(), []).append(result)
    for device, part in by_device.items():
        published = inventory.find(device)
        reason = _overbooked(device, part, use.get(device), published.device if published else None)
        if reason is not None:
            return reason
    return overdrawn(results, use, inventory)


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
