"""How a solution is written down: the allocation of each claim, as the API stores it.

Source of the forms: Kubernetes' allocator, down to the node selector, because the API server and
the scheduler's book read them.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from driver.allocator.capacity import NOTHING
from driver.allocator.demand import Candidate, Demand, Obstacle, Rules
from driver.allocator.device import PooledDevice
from driver.allocator.plan import Plan
from driver.model.api import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from driver.model.deviceclass import DeviceClass
from driver.model.errors import AllocationError
from driver.model.resourceclaim import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)

Result = DeviceRequestAllocationResult


def allocations(plan: Plan, solution: Sequence[Candidate]) -> tuple[AllocationResult, ...]:
    """One allocation per claim; results in the order of the claim's requests."""
    by_claim: list[list[Candidate]] = [[] for _ in plan.problem.claims]
    for candidate in solution:
        by_claim[candidate.demand.claim].append(candidate)
    return tuple(_allocation(plan, index, chosen) for index, chosen in enumerate(by_claim))


def with_share_ids(allocation: AllocationResult, new: Callable[[], str]) -> AllocationResult:
    """The allocation with a new ID for each share that has none yet."""
    results = (
        replace(one, share_id=new()) if one.share_id == "" else one
        for one in allocation.devices.results
    )
    return replace(allocation, devices=replace(allocation.devices, results=tuple(results)))


def _allocation(plan: Plan, index: int, chosen: list[Candidate]) -> AllocationResult:
    problem, claim = plan.problem, plan.problem.claims[index]
    demands = {one.name: one for one in plan.fixed if one.claim == index}
    demands |= {one.demand.name: one.demand for one in chosen}
    results: list[Result] = []
    devices: list[PooledDevice] = []
    for request in claim.spec.devices.requests:
        for name in (n for n, demand in demands.items() if demand.request == request.name):
            for result in problem.fixed.get((index, name), ()):
                results.append(result)
                found = plan.book.find(result.device_id())
                devices += [found.device] if found else []
            for candidate in (one for one in chosen if one.demand.name == name):
                results.append(_result(candidate, plan.rules))
                devices.append(candidate.standing.device)
    return AllocationResult(
        devices=DeviceAllocationResult(
            results=tuple(results), config=_config(claim, list(demands.values()))
        ),
        node_selector=_node_selector(problem.node.metadata.name, devices),
    )


def _result(candidate: Candidate, rules: Rules) -> Result:
    demand, pooled = candidate.demand, candidate.standing.device
    share = pooled.shareable
    portion = candidate.portion(rules) if share else NOTHING
    binding = rules.features.device_binding_and_status
    return Result(
        request=demand.name,
        driver=pooled.id.driver,
        pool=pooled.id.pool,
        device=pooled.id.device,
        admin_access=True if demand.admin else None,
        tolerations=demand.asked.tolerations,
        binding_conditions=pooled.device.binding_conditions if binding else (),
        binding_failure_conditions=pooled.device.binding_failure_conditions if binding else (),
        share_id="" if share else None,
        consumed_capacity={} if isinstance(portion, Obstacle) else dict(portion.amounts),
        skip_node_operations=pooled.slice.spec.skip_node_operations,
    )


def _node_selector(node_name: str, devices: Iterable[PooledDevice]) -> NodeSelector | None:
    expressions: list[NodeSelectorRequirement] = []
    fields: list[NodeSelectorRequirement] = []
    for pooled in devices:
        device, spec = pooled.device, pooled.slice.spec
        source = device if spec.per_device_node_selection else spec
        if source.node_name is not None or device.binds_to_node:
            only = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node_name,))
            return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(only,)),))
        terms = source.node_selector.node_selector_terms if source.node_selector else ()
        if len(terms) > 1:
            raise AllocationError(
                f"device {pooled.id}: its node selector has {len(terms)} terms: expected one"
            )
        for term in terms:
            _add_missing(expressions, term.match_expressions)
            _add_missing(fields, term.match_fields)
    if not expressions and not fields:
        return None
    term = NodeSelectorTerm(match_expressions=tuple(expressions), match_fields=tuple(fields))
    return NodeSelector(node_selector_terms=(term,))


def _add_missing(
    known: list[NodeSelectorRequirement], more: Iterable[NodeSelectorRequirement]
) -> None:
    for one in more:
        if not any(
            (one.key, one.operator) == (other.key, other.operator)
            and set(one.values) == set(other.values)
            for other in known
        ):
            known.append(one)


def _config(
    claim: ResourceClaim, demands: list[Demand]
) -> tuple[DeviceAllocationConfiguration, ...]:
    """Class entries first, once per class, then the claim's; `requests` only if not for all."""
    ordered = [
        one
        for request in claim.spec.devices.requests
        for one in demands
        if one.request == request.name
    ]
    classes = {one.device_class.metadata.name: one.device_class for one in ordered}
    of_classes = (_class_config(one, ordered) for one in classes.values())
    return (*itertools.chain.from_iterable(of_classes), *_claim_config(claim, ordered))


def _class_config(
    device_class: DeviceClass, demands: list[Demand]
) -> Iterable[DeviceAllocationConfiguration]:
    users = [one.name for one in demands if one.device_class is device_class]
    for entry in device_class.spec.config:
        yield DeviceAllocationConfiguration(
            source="FromClass",
            requests=() if len(users) == len(demands) else tuple(users),
            opaque=entry.opaque,
        )


def _claim_config(
    claim: ResourceClaim, demands: list[Demand]
) -> Iterable[DeviceAllocationConfiguration]:
    for entry in claim.spec.devices.config:
        named = entry.requests
        about = [one for one in demands if one.name in named or one.request in named]
        if named and not about:
            continue
        yield DeviceAllocationConfiguration(
            source="FromClaim",
            requests=() if len(about) == len(demands) else named,
            opaque=entry.opaque,
        )
