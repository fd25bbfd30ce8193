"""All demands of a problem, checked and with their candidates: what a search goes through.

Source of the checks, their order and their texts: Kubernetes' allocator, which makes them before
it tries any device.
"""

import sys

import msgspec

from driver.allocator.constraints import Constraint, applies, constraints_of
from driver.allocator.demand import Asked, Candidate, Demand, Rules, own_name
from driver.allocator.pools import SELECTORS_MAY_COST, Pool
from driver.allocator.problem import Problem
from driver.allocator.standing import Book
from driver.model.deviceclass import DeviceClass
from driver.model.errors import AllocationError, TooDearError
from driver.model.resourceclaim import (
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)

MAX_RESULTS = 32


class Step:
    """One request to serve: its alternatives, in order of preference.

    `least_after` is how many results the later requests of the claim need at the least.
    """

    __slots__ = ("alternatives", "claim", "least_after")

    def __init__(self, claim: int, alternatives: tuple[Demand, ...]) -> None:
        self.claim = claim
        self.alternatives = alternatives
        self.least_after = 0

    @property
    def least(self) -> int:
        """How many results the request needs at the least."""
        return min((demand.count for demand in self.alternatives), default=sys.maxsize)


class _Asker(msgspec.Struct, frozen=True):
    """One claim with what its demands have in common."""

    index: int
    claim: ResourceClaim
    name: str
    constraints: list[Constraint]


class Plan:
    """The demands of a problem.

    `steps` are the requests to search, in order, with the `candidates` of each demand. `fixed` are
    those whose results the problem gives. `rules` hold on its node.
    """

    def __init__(self, problem: Problem, book: Book) -> None:
        self.problem = problem
        self.book = book
        self.steps: list[Step] = []
        self.fixed: list[Demand] = []
        # Not in the demands: they and their candidates would know each other, and what a decision
        # leaves behind would wait for the garbage collector.
        self.candidates: dict[Demand, tuple[Candidate, ...]] = {}
        self.rules = Rules.of(problem.features, problem.node)
        self._offsets = _offsets(problem)
        self._spent = 0
        for index, claim in enumerate(problem.claims):
            name = claim_name(claim)
            constraints = constraints_of(claim, name, problem.features)
            self._add(_Asker(index, claim, name, constraints))

    def _add(self, asker: _Asker) -> None:
        needed, steps = 0, []
        for request in asker.claim.spec.devices.requests:
            given = self._given(asker, request)
            if given is not None:
                self.fixed.append(given)
                needed += len(self.problem.fixed[asker.index, given.name])
                continue
            step = Step(asker.index, self._alternatives(asker, request))
            steps.append(step)
            needed += step.least
            if needed > MAX_RESULTS:
                raise AllocationError(
                    f"claim {asker.name}, request {request.name}: number of requested devices "
                    f"{needed} exceeds the claim limit of {MAX_RESULTS}"
                )
        after = 0
        for step in reversed(steps):
            step.least_after = after
            after += step.least
        self.steps.extend(steps)

    def _given(self, asker: _Asker, request: DeviceRequest) -> Demand | None:
        """The request, or the alternative of it, whose results the problem fixes."""
        return next(
            (
                self._demand(asker, request, asked)
                for asked in _options(request)
                if (asker.index, _name(request, asked)) in self.problem.fixed
            ),
            None,
        )

    def _alternatives(self, asker: _Asker, request: DeviceRequest) -> tuple[Demand, ...]:
        where = f"claim {asker.name}, request {request.name}"
        if request.first_available:
            _require(
                self.problem.features.prioritized_list,
                f"{where}: has subrequests, but the DRAPrioritizedList feature",
            )
        pinned = self.problem.pinned_subrequests.get((asker.index, request.name))
        options = [
            asked
            for asked in _options(request)
            if pinned is None or _name(request, asked) == f"{request.name}/{pinned}"
        ]
        if not options:
            raise AllocationError(
                f"{where}: expected `exactly`, or `firstAvailable` with "
                f"{pinned or 'an alternative'} (unsupported request type?)"
            )
        demands = [self._demand(asker, request, asked) for asked in options]
        for demand in demands:
            self._find_candidates(demand)
        return tuple(demands)

    def _demand(self, asker: _Asker, request: DeviceRequest, asked: Asked) -> Demand:
        name = _name(request, asked)
        kind = "request" if isinstance(asked, ExactDeviceRequest) else "subrequest"
        where = f"claim {asker.name}, {kind} {own_name(name)}"
        self._check_features(where, asked)
        return Demand(
            asked,
            self._class(where, asked),
            claim=asker.index,
            claim_name=asker.name,
            name=name,
            constraints=tuple(
                one
                for one in asker.constraints
                if applies(one, request=request.name, full_name=name)
            ),
            derived={one.name: one.expression for one in asked.derived_attributes},
        )

    def _check_features(self, where: str, asked: Asked) -> None:
        """Refuse what the cluster has switched off, so that nothing asked for is passed over."""
        features = self.problem.features
        if isinstance(asked, ExactDeviceRequest) and asked.admin_access is not None:
            _require(features.admin_access, f"{where}: admin access is requested, but the feature")
        if asked.capacity is not None:
            _require(
                features.consumable_capacity,
                f"{where}: has capacity requests, but the DRAConsumableCapacity feature",
            )
        if asked.derived_attributes:
            _require(
                features.derived_attributes, f"{where}: has derived attributes, but the feature"
            )

    def _class(self, where: str, asked: Asked) -> DeviceClass:
        if any(selector.cel is None for selector in asked.selectors):
            raise AllocationError(f"{where}: CEL expression empty (unsupported selector type?)")
        if asked.allocation_mode not in {"ExactCount", "All"}:
            raise AllocationError(f"{where}: unsupported count mode {asked.allocation_mode}")
        found = self.problem.classes.get(asked.device_class_name)
        if found is None:
            raise AllocationError(
                f"{where}: could not retrieve device class {asked.device_class_name}: it does "
                "not exist; create it, or name another class in the claim"
            )
        return found

    def _pay(self, pools: tuple[Pool, ...], expressions: tuple[str, ...]) -> None:
        """Count what the selectors cost, so that the same problem is always too dear, or never."""
        for pool in pools:
            self._spent += pool.price(expressions)
            if self._spent > SELECTORS_MAY_COST:
                raise TooDearError("the selectors of its requests take too long to be evaluated")

    def _find_candidates(self, demand: Demand) -> None:
        pools, expressions = self.problem.pools, demand.selectors()
        if demand.takes_all:
            for pool in pools:
                _require_whole(pool, demand)
        self._pay(pools, expressions)
        candidates = [
            Candidate(demand, self.book.standing(device, offset + position), failure)
            for pool, offset in zip(pools, self._offsets, strict=True)
            for position, device, failure in pool.selected(expressions)
        ]
        if demand.takes_all:
            candidates = [one for one in candidates if one.wanted_by_all(self.rules)]
            demand.count = len(candidates)
        self.candidates[demand] = tuple(candidates)


def claim_name(claim: ResourceClaim) -> str:
    """The claim as Kubernetes' texts call it: with its namespace where it has one."""
    namespace, name = claim.metadata.namespace, claim.metadata.name
    return f"{namespace}/{name}" if namespace else name


def _offsets(problem: Problem) -> list[int]:
    offsets, total = [], 0
    for pool in problem.pools:
        offsets.append(total)
        total += len(pool.asked)
    return offsets


def _options(request: DeviceRequest) -> tuple[Asked, ...]:
    exact = () if request.exactly is None else (request.exactly,)
    return (*exact, *request.first_available)


def _name(request: DeviceRequest, asked: Asked) -> str:
    """The name that results have for it."""
    return f"{request.name}/{asked.name}" if isinstance(asked, DeviceSubRequest) else request.name


def _require(feature: object, what: str) -> None:
    if not feature:
        raise AllocationError(f"{what} is disabled")


def _require_whole(pool: Pool, demand: Demand) -> None:
    if not pool.usable:
        state = "being updated" if pool.incomplete else f"invalid: {pool.invalid}"
        raise AllocationError(
            f"{demand.described}: asks for all devices, but resource pool {pool.id} is currently "
            f"{state}"
        )
