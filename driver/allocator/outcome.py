"""What came out of an allocation, and how a scorer sees the node it was made for."""

from collections.abc import Iterable, Sequence

import msgspec

from driver.allocator.condition import UNUSED
from driver.allocator.problem import Problem
from driver.allocator.scored import Scored
from driver.model.allocation import Explanation, Rejection, RejectionKind
from driver.model.ids import DeviceId
from driver.model.resourceclaim import AllocationResult
from driver.policy.view import Choice, NodeView, Taken


class Allocated(msgspec.Struct, frozen=True, kw_only=True):
    """One allocation per claim, in order, and why.

    A new share of a device carries the `share_id` "": the caller fills it in (for instance with
    `results.with_share_ids`), because a UUID cannot come out of a pure function. `truncated` says
    that the search stopped at its bound: this is the best found so far, never worse than first
    fit.
    """

    allocations: tuple[AllocationResult, ...]
    explanation: Explanation = Explanation()
    steps: int = 0
    truncated: bool = False


class Unsatisfiable(msgspec.Struct, frozen=True, kw_only=True):
    """The claims do not fit on the node; `truncated`: nothing was found within the bound."""

    rejections: tuple[Rejection, ...] = ()
    steps: int = 0
    truncated: bool = False

    def kinds(self) -> tuple[RejectionKind, ...]:
        """Of which kinds the reasons are, each once; there is always one."""
        if self.truncated:
            return (RejectionKind.SEARCH_BOUND,)
        found = dict.fromkeys(one.kind for one in self.rejections)
        return tuple(found) or (RejectionKind.NOT_SELECTED,)

    def reason(self) -> str:
        """Why, in one line: the rejections by number of devices, or what else it can be."""
        if self.truncated:
            return f"no set of devices was found within {self.steps} steps"
        if not self.rejections:
            return "no device of its pools is selected"
        return "; ".join(
            f"{one.count} device{'s' if one.count != 1 else ''}: {one.reason}"
            + (f" (such as {one.example})" if one.example else "")
            for one in self.rejections
        )


def node_view(problem: Problem) -> NodeView:
    """The node as scorers see it: its scored devices and what is in use of them."""
    found, use_of = scored(problem), problem.usage.get
    devices = [
        device.under(use_of(device.id, UNUSED)).view(place)
        for place, device in enumerate(found.devices)
    ]
    return NodeView(name=problem.node.metadata.name, devices=tuple(devices), layout=found.layout)


def scored(problem: Problem) -> Scored:
    """The devices that count in scores."""
    driver = problem.driver
    pools = [pool for pool in problem.pools if driver is None or pool.id.driver == driver]
    if len(pools) == 1:
        return pools[0].scored()
    return Scored([device for pool in pools for device in pool.devices])


def choice(problem: Problem, allocations: Sequence[AllocationResult]) -> Choice:
    """What the allocations take of the scored devices; admin access takes nothing."""
    index = {device.id: place for device, place in scored(problem).index.items()}
    return Choice(tuple(_taken(index, allocations)))


def _taken(index: dict[DeviceId, int], allocations: Sequence[AllocationResult]) -> Iterable[Taken]:
    for allocation in allocations:
        for result in allocation.devices.results:
            place = index.get(result.device_id())
            if place is None or result.admin_access:
                continue
            consumed = {name: one.nano for name, one in result.consumed_capacity.items()}
            yield Taken(place, consumed, exclusive=result.share_id is None)
