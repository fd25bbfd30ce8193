"""An exhaustive allocator, too plain to be wrong. Shares no rule with `driver.allocator`."""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from typing import Any

from driver.allocator.problem import Problem
from tests.allocator.worlds import amounts, in_use, options

# What one request gets: its claim's place, its name in results, what it asks for, its devices.
Pick = tuple[int, str, Any, tuple[Any, ...]]


def solutions(problem: Problem, picks: tuple[Pick, ...] = ()) -> Iterator[tuple[Pick, ...]]:
    """All valid sets that begin so, in the order in which first fit would meet them."""
    devices = [device for pool in problem.pools for device in pool.devices]
    requests = [(n, one) for n, c in enumerate(problem.claims) for one in c.spec.devices.requests]
    for place, request in requests[len(picks) : len(picks) + 1]:
        for name, asked in options(request):
            for got in combinations(devices, asked.count):
                if valid(problem, more := (*picks, (place, name, asked, got))):
                    yield from solutions(problem, more)
    if len(picks) == len(requests):
        yield picks


def valid(problem: Problem, picks: tuple[Pick, ...]) -> bool:
    """Whether all of this can be given out together."""
    given = [(asked, device) for _, _, asked, devices in picks for device in devices]
    rules = [(n, one) for n, c in enumerate(problem.claims) for one in c.spec.devices.constraints]
    selected = all(one.judged(rule.cel.expression)[0] for a, one in given for rule in a.selectors)
    return selected and _enough(problem, given) and all(_agree(picks, *rule) for rule in rules)


def _enough(problem: Problem, given: list[tuple[Any, Any]]) -> bool:
    drawn, there = Counter[Any](), Counter[Any]()
    for pool in problem.pools:
        for group in pool.counter_sets.values():
            there.update({(group.name, n): one.value.nano for n, one in group.counters.items()})
        for device in pool.devices:
            there.update({device: 1} | {(device, n): size for n, size in device.capacity.items()})
            takes = [amounts(asked, device) for asked, one in given if one is device]
            takes += in_use(problem, device)
            drawn.update({device: 0 if device.shareable else len(takes)})
            for taken in takes:
                drawn.update({(device, n): size for n, size in taken.items()})
            for use in device.device.consumes_counters if takes else ():
                drawn.update({(use.counter_set, n): c.value.nano for n, c in use.counters.items()})
    return drawn <= there


def _agree(picks: tuple[Pick, ...], place: int, rule: Any) -> bool:
    told = [one for one in picks if one[0] == place]
    if rule.requests:
        told = [one for one in told if {one[1], one[1].split("/")[0]} & {*rule.requests}]
    name = rule.match_attribute or rule.distinct_attribute
    seen = [device.attribute(name) for *_, devices in told for device in devices]
    wanted = len(seen) if rule.distinct_attribute else min(1, len(seen))
    return None not in seen and len(set(seen)) == wanted
