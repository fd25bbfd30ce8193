"""Why devices are no candidates: counted by reason, with one example each.

Looks at every device alone, before anything is placed. A device that is given no reason here may
still not go together with the others.
"""

from collections.abc import Iterable

from driver.allocator.demand import Demand, Obstacle
from driver.allocator.plan import Plan
from driver.model.allocation import Rejection, RejectionKind
from driver.model.ids import DeviceId

_TOGETHER = Obstacle(RejectionKind.CONSTRAINT, "fits alone, but not together with the others")
_INCOMPLETE = Obstacle(RejectionKind.POOL, "its pool is incomplete: slices are missing")


def rejections(plan: Plan, *, failed: bool = False) -> tuple[Rejection, ...]:
    """The reasons, most frequent first.

    `failed`: nothing fits, so devices without a reason of their own are counted too.
    """
    found: dict[str, dict[DeviceId, None]] = {}
    kinds: dict[str, RejectionKind] = {}
    for obstacle, device in _all(plan, failed=failed):
        found.setdefault(obstacle.reason, {})[device] = None
        kinds[obstacle.reason] = obstacle.kind
    counted = [
        Rejection(reason, kinds[reason], len(devices), next(iter(devices)))
        for reason, devices in found.items()
    ]
    return tuple(sorted(counted, key=lambda one: (-one.count, one.reason)))


def _all(plan: Plan, *, failed: bool) -> Iterable[tuple[Obstacle, DeviceId]]:
    for pool in plan.problem.pools:
        if pool.incomplete:
            yield _INCOMPLETE, DeviceId(*pool.id, "")
        if pool.invalid is not None:
            invalid = Obstacle(RejectionKind.POOL, f"its pool is invalid: {pool.invalid}")
            yield invalid, DeviceId(*pool.id, "")
    for step in plan.steps:
        for demand in step.alternatives:
            yield from _of_demand(plan, demand, failed=failed)


def _of_demand(plan: Plan, demand: Demand, *, failed: bool) -> Iterable[tuple[Obstacle, DeviceId]]:
    candidates = plan.candidates[demand]
    selected = {one.standing.device for one in candidates}
    name = demand.device_class.metadata.name
    other = Obstacle(
        RejectionKind.NOT_SELECTED, f"not selected by class {name} and request {demand.name}"
    )
    for pool in plan.problem.pools:
        for device in pool.devices:
            if device not in selected:
                yield other, device.id
    alone = [
        (candidate.obstacle(plan.rules, plan.book), candidate.standing.device.id)
        for candidate in candidates
    ]
    others = _without(demand, fitting=sum(obstacle is None for obstacle, _ in alone))
    for obstacle, device_id in alone:
        if obstacle is not None or failed:
            yield obstacle or others, device_id


def _without(demand: Demand, *, fitting: int) -> Obstacle:
    """Why so many devices that would do, each for itself, do not satisfy the demand."""
    if fitting < demand.count:
        return Obstacle(
            RejectionKind.TOO_FEW,
            f"would do, but request {demand.name} asks for {demand.count} and there are no more",
        )
    return _TOGETHER
