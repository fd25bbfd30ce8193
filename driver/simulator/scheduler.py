"""Where kube-scheduler puts a pod, and which devices it proposes: the first that fit.

The nominated node is tried before all others, which is what the scheduler does too. The others
follow in the order given: the real scheduler ranks them by scores that know nothing of devices.
"""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from driver.allocator.allocate import allocate
from driver.allocator.outcome import Allocated
from driver.allocator.problem import Problem
from driver.model.errors import AllocationError
from driver.model.ids import NodeName
from driver.model.resourceclaim import AllocationResult


class Placed(msgspec.Struct, frozen=True):
    """A node that takes the pod, with one allocation for each claim of the problem."""

    node: NodeName
    allocations: tuple[AllocationResult, ...]


class Unplaced(msgspec.Struct, frozen=True):
    """Why each node was out of the question, in the order in which they were tried."""

    reasons: tuple[tuple[NodeName, str], ...]

    def reason(self) -> str:
        """One sentence over all nodes, equal reasons counted together, the most frequent first."""
        nodes: dict[str, list[NodeName]] = {}
        for node, reason in self.reasons:
            nodes.setdefault(reason, []).append(node)
        parts = [
            f"{', '.join(names)}: {reason}"
            if len(names) < _MANY
            else f"{len(names)} nodes: {reason}"
            for reason, names in sorted(nodes.items(), key=lambda item: -len(item[1]))
        ]
        return "; ".join(parts) or "there are no nodes"


# From so many nodes on, their number says more than their names.
_MANY = 4


def first_fit(
    nodes: Iterable[NodeName],
    problem: Callable[[NodeName], Problem | str],
    *,
    nominated: str = "",
) -> Placed | Unplaced:
    """Try node after node. `problem` says what to allocate there, or why the pod cannot run there.

    A problem without claims fits as it is: all that the pod needs is allocated already.
    """
    reasons: list[tuple[NodeName, str]] = []
    for node in _order(nodes, nominated):
        found = _attempt(problem(node))
        if not isinstance(found, str):
            return Placed(node, found)
        reasons.append((node, found))
    return Unplaced(tuple(reasons))


def _order(nodes: Iterable[NodeName], nominated: str) -> Iterator[NodeName]:
    all_nodes = tuple(nodes)
    yield from (node for node in all_nodes if node == nominated)
    yield from (node for node in all_nodes if node != nominated)


def _attempt(problem: Problem | str) -> tuple[AllocationResult, ...] | str:
    if isinstance(problem, str):
        return problem
    if not problem.claims:
        return ()
    try:
        outcome = allocate(problem)
    except AllocationError as error:
        return str(error)
    return outcome.allocations if isinstance(outcome, Allocated) else outcome.reason()
