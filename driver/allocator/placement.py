"""Placing devices one by one, and taking them back: the moves of every search.

A placement is refused in the order in which Kubernetes' allocator refuses it, so that errors come
up where they do there. Moves are taken back last first.
"""

from driver.allocator.capacity import Portion
from driver.allocator.demand import Candidate, Demand, Obstacle
from driver.allocator.plan import Plan
from driver.allocator.standing import Standing
from driver.model.errors import AllocationError
from driver.model.resourceclaim import DeviceRequestAllocationResult


class Board:
    """What a search has placed so far, with the use and the constraints that follow from it.

    `placed` holds what was placed by `place`, in order; fixed results are on the board from the
    start and stay.
    """

    def __init__(self, plan: Plan) -> None:
        self._rules = plan.rules
        self._book = plan.book
        self.placed: list[Candidate] = []
        self._per_claim = [0] * len(plan.problem.claims)
        for demand in plan.fixed:
            for result in plan.problem.fixed[demand.claim, demand.name]:
                self._fix(demand, result)

    def results_of(self, claim: int) -> int:
        """How many results the claim has on the board, fixed ones included."""
        return self._per_claim[claim]

    def place(self, candidate: Candidate) -> bool:
        """Put one device on the board; false, and nothing changed, when it cannot be there.

        Raises `AllocationError` where Kubernetes' allocator would stop; nothing is changed then.
        """
        demand, standing = candidate.demand, candidate.standing
        if not standing.open_to(demand.claim, admin=demand.admin):
            return False
        portion = candidate.portion(self._rules)
        if isinstance(portion, Obstacle):
            return False
        short = standing.device.shareable and standing.short_of(portion) is not None
        if short and not demand.takes_all:
            return False
        if not self._bind(candidate):
            return False
        if short:
            # For mode All a violated constraint is an error, also where capacity lacks as well.
            self._release(candidate)
            return False
        self._hold(demand, standing, portion)
        self.placed.append(candidate)
        return True

    def take_back(self) -> None:
        """Undo the last `place`."""
        candidate = self.placed.pop()
        demand, standing = candidate.demand, candidate.standing
        self._per_claim[demand.claim] -= 1
        if not standing.device.shareable:
            standing.holders.pop()
        else:
            portion = candidate.portion(self._rules)
            standing.remove_share({} if isinstance(portion, Obstacle) else portion.nanos)
        self._release(candidate)

    def _bind(self, candidate: Candidate) -> bool:
        """Draw the counters and enter the constraints, or neither."""
        standing = candidate.standing
        draws = bool(standing.device.device.consumes_counters)
        if draws and not self._book.take_counters(standing):
            return False
        bound = False
        try:
            bound = self._constrain(candidate)
        finally:
            if draws and not bound:
                self._book.give_back_counters(standing)
        return bound

    def _release(self, candidate: Candidate) -> None:
        """Undo `_bind`."""
        for constraint in candidate.demand.constraints:
            constraint.remove()
        if candidate.standing.device.device.consumes_counters:
            self._book.give_back_counters(candidate.standing)

    def _hold(self, demand: Demand, standing: Standing, portion: Portion) -> None:
        self._per_claim[demand.claim] += 1
        if not standing.device.shareable:
            standing.holders.append(demand.claim)
        else:
            standing.add_share(portion.nanos)

    def _constrain(self, candidate: Candidate) -> bool:
        demand = candidate.demand
        values = candidate.values() if demand.constraints else ()
        for index, (constraint, value) in enumerate(zip(demand.constraints, values, strict=True)):
            if constraint.add(value):
                continue
            for earlier in demand.constraints[:index]:
                earlier.remove()
            if demand.takes_all:
                raise AllocationError(
                    f"{demand.described}: cannot add device {candidate.standing.device.id} "
                    "because a claim constraint would not be satisfied"
                )
            return False
        return True

    def _fix(self, demand: Demand, result: DeviceRequestAllocationResult) -> None:
        """Put a result on the board that is not ours to change; only constraints can refuse it."""
        standing = self._book.find(result.device_id())
        if standing is None:
            if demand.constraints:
                raise AllocationError(
                    f"{demand.described}: device {result.device_id()} is given, but in no slice "
                    "of the node: the constraints of the claim cannot be checked"
                )
            self._per_claim[demand.claim] += 1
            return
        if not self._constrain(Candidate(demand, standing, None)):
            raise AllocationError(
                f"{demand.described}: device {result.device_id()} is given, but does not satisfy "
                "the constraints of the claim together with the other given devices"
            )
        if standing.device.device.consumes_counters:
            self._book.take_counters(standing)
        self._per_claim[demand.claim] += 1
        if result.share_id is None:
            standing.holders.append(demand.claim)
        else:
            standing.add_share({n: one.nano for n, one in result.consumed_capacity.items()})
