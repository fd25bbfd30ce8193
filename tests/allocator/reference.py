"""An exhaustive allocator, too plain to be wrong: every choice in order, checked from scratch.

Knows exact requests and their alternatives, whole and shared devices without request policies,
counters, match and distinct constraints on scalars. Shares no rule with `driver.allocator`.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

from driver.allocator.device import PooledDevice
from driver.allocator.problem import Problem
from driver.model.allocation import DeviceUse
from driver.model.resourceclaim import DeviceRequest

# What one request gets: its claim, its name, what it asks for, its devices.
Pick = tuple[int, str, Any, tuple[PooledDevice, ...]]


def solutions(problem: Problem) -> Iterator[tuple[Pick, ...]]:
    """All valid sets, in the order in which first fit would meet them."""
    devices = [device for pool in problem.pools for device in pool.devices]
    requests = [
        [
            (index, f"{one.name}/{asked.name}" if one.first_available else one.name, asked, got)
            for asked in options(one)
            for got in combinations([d for d in devices if _alone(problem, asked, d)], asked.count)
        ]
        for index, claim in enumerate(problem.claims)
        for one in claim.spec.devices.requests
    ]
    return (picks for picks in product(*requests) if valid(problem, picks))


def options(request: DeviceRequest) -> tuple[Any, ...]:
    """The request itself, or its alternatives."""
    return request.first_available or (request.exactly,)


def valid(problem: Problem, picks: tuple[Pick, ...]) -> bool:
    """Whether all of this can be given out together."""
    given = [(asked, device) for _, _, asked, devices in picks for device in devices]
    fit = all(_alone(problem, asked, d) and _has_room(problem, given, d) for asked, d in given)
    return fit and _counters_last(problem, given) and _constrained(problem, picks)


def _alone(problem: Problem, asked: Any, device: PooledDevice) -> bool:
    room = _has_room(problem, [(asked, device)], device)
    return room and all(device.judged(one.cel.expression)[0] for one in asked.selectors)


def amounts(asked: Any, device: PooledDevice) -> dict[str, int]:
    """What is taken of each capacity."""
    wanted = asked.capacity.requests if asked.capacity else {}
    return device.capacity | {name: quantity.nano for name, quantity in wanted.items()}


def _has_room(problem: Problem, given: list[Any], device: PooledDevice) -> bool:
    use = problem.usage.get(device.id, DeviceUse())
    taken = [amounts(asked, other) for asked, other in given if other is device]
    if not device.shareable:
        fits = all(taken[0][name] <= size for name, size in device.capacity.items())
        return fits and len(taken) == 1 and device.id not in problem.usage
    used = {name: quantity.nano for name, quantity in use.consumed.items()}
    return not use.exclusive and all(
        sum(one[name] for one in taken) + used.get(name, 0) <= size
        for name, size in device.capacity.items()
    )


def _counters_last(problem: Problem, given: list[Any]) -> bool:
    drawn: Counter[Any] = Counter()
    new = {device for _, device in given if device.device.consumes_counters}
    for device in new | {d for p in problem.pools for d in p.devices if d.id in problem.usage}:
        for use in device.device.consumes_counters:
            drawn.update({(device.pool, n): c.value.nano for n, c in use.counters.items()})
    return not new or all(
        drawn[pool.id, name] <= counter.value.nano
        for pool in problem.pools
        for group in pool.counter_sets.values()
        for name, counter in group.counters.items()
    )


def _constrained(problem: Problem, picks: tuple[Pick, ...]) -> bool:
    for index, claim in enumerate(problem.claims):
        for one in claim.spec.devices.constraints:
            seen = [
                device.attribute(one.match_attribute or one.distinct_attribute or "")
                for owner, name, _, devices in picks
                if owner == index
                if not one.requests or {name, name.split("/")[0]} & {*one.requests}
                for device in devices
            ]
            wanted = len(seen) if one.distinct_attribute else min(1, len(seen))
            if None in seen or len(set(seen)) != wanted:
                return False
    return True
