"""The GPU axis: which devices of the node a claim gets, at the moment the scheduler commits it.

The rules are the design's ("Rules of the commit hook", "The ledger"). One call of `decide` is one
answer; it awaits nothing, so that in one process answers follow each other. It reads the cluster's
state and, unless the request is a dry run, enters its answer in the ledger.
"""

from collections.abc import Callable, Iterable
from enum import StrEnum

import msgspec

from driver.allocator.allocate import allocate
from driver.allocator.outcome import Allocated, Unsatisfiable
from driver.allocator.pools import Pool
from driver.allocator.problem import Problem
from driver.controller import results as remaking
from driver.controller.cluster import Cluster
from driver.controller.ledger import Answer, AnswerKey, Ledger
from driver.controller.policies import UnknownPolicyError
from driver.controller.proposal import Proposal, answer_key, node_of, ours
from driver.model.allocation import Explanation, RejectionKind
from driver.model.errors import AllocationError, TooDearError
from driver.model.ids import DeviceId, NodeName
from driver.model.resourceclaim import (
    DeviceRequestAllocationResult,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimStatus,
)
from driver.wire.patch import Operation

Result = DeviceRequestAllocationResult
Results = tuple[Result, ...]

# How long a refused write is refused again when it comes back on an old version (rule 3).
REFUSAL_HOLDS_S = 5.0
# A holder that we have seen for so long, the scheduler has seen as well (rule 10).
SCHEDULER_HAS_SEEN_S = 2.0


class Allow(msgspec.Struct, frozen=True, kw_only=True):
    """Store the claim, changed by `patch`.

    `results` is empty where we say nothing: the write is not ours, or it cannot land (`outdated`).
    """

    patch: list[Operation] = []
    results: Results = ()
    outdated: bool = False
    # The key of the answer that this call alone made, to take back if it never arrives (rule 6).
    answer: AnswerKey | None = None
    explanation: Explanation | None = None


class Cause(StrEnum):
    """Kinds of refusals, for whoever counts them."""

    NOTHING_FITS = "nothing-fits"
    IN_USE = "in-use"
    UNKNOWN_POLICY = "unknown-policy"
    REFUSED_BEFORE = "refused-before"
    CHECKS_DISAGREE = "checks-disagree"
    NOT_SEEN_YET = "not-seen-yet"
    NOT_LEADING = "not-leading"


class Deny(msgspec.Struct, frozen=True):
    """Do not store the claim; the scheduler rolls back and tries again with fresh state."""

    reason: str
    cause: Cause
    # Devices that the scheduler believes free though another claim has long held them (rule 10).
    believed_free: frozenset[DeviceId] = frozenset()
    # What was in the way of the node's devices, where none of their sets would do.
    rejected: tuple[RejectionKind, ...] = ()


Ruling = Allow | Deny


def decide(
    proposal: Proposal,
    *,
    cluster: Cluster,
    now: float,
    share_id: Callable[[], str],
    dry_run: bool = False,
) -> Ruling:
    """Rule on one proposal. `share_id` makes a new random UUID; `now` is monotonic seconds."""
    if not any(ours(result, cluster.driver) for result in proposal.results):
        return Allow()
    if proposal.sent_on != proposal.base or not cluster.ledger.base(
        proposal.uid, proposal.base, now
    ):
        return _cannot_land(proposal, cluster, now)
    key = answer_key(proposal, cluster.driver)
    known = cluster.ledger.find(proposal.uid, key)
    if known is not None:
        if not dry_run:
            cluster.ledger.repeat(proposal.uid, key)
        return Allow(patch=remaking.patch(proposal.results, known.results), results=known.results)
    ruling = _choose(proposal, cluster, now, share_id)
    if dry_run:
        return ruling
    if isinstance(ruling, Deny):
        cluster.refusals[proposal.uid] = (now, ruling.reason)
        return ruling
    answer = Answer(claim=proposal.key, uid=proposal.uid, key=key, results=ruling.results, at=now)
    cluster.ledger.answer(answer)
    cluster.nominations.settle(proposal.claim)
    return msgspec.structs.replace(ruling, answer=key)


def _cannot_land(proposal: Proposal, cluster: Cluster, now: float) -> Ruling:
    """Rule 3: nothing to hold; but a refused scheduler must not take silence for consent."""
    at, reason = cluster.refusals.get(proposal.uid, (float("-inf"), ""))
    if now - at < REFUSAL_HOLDS_S:
        return Deny(reason, Cause.REFUSED_BEFORE)
    return Allow(outdated=True)


def _choose(
    proposal: Proposal, cluster: Cluster, now: float, share_id: Callable[[], str]
) -> Ruling:
    allocation = proposal.claim.status.allocation
    node = node_of(allocation.node_selector) if allocation is not None else None
    if proposal.unknown or node is None:
        return _keep(proposal, cluster, now)
    try:
        policies = cluster.policies(proposal.claim)
        scoring = cluster.scoring.objective(policies.gpu.value, policies.weighting())
    except UnknownPolicyError as error:
        # The webhook on pods refuses it earlier; this claim came by another way.
        return Deny(_sentence(proposal, str(error)), Cause.UNKNOWN_POLICY)
    if scoring is None and isinstance(kept := _keep(proposal, cluster, now), Allow):
        return kept
    try:
        outcome = allocate(_problem(proposal, cluster, node, now), objective=scoring)
    except (AllocationError, TooDearError):
        # Something in the claim or the slices is beyond us; the scheduler understood it.
        return _keep(proposal, cluster, now)
    if isinstance(outcome, Unsatisfiable):
        denial = _deny(proposal, cluster, outcome.reason(), cause=Cause.NOTHING_FITS, now=now)
        return msgspec.structs.replace(denial, rejected=outcome.kinds())
    return _swap(proposal, cluster, outcome, share_id)


def _problem(proposal: Proposal, cluster: Cluster, node: NodeName, now: float) -> Problem:
    pools = cluster.inventory.pools(cluster.node(node))
    return Problem(
        node=cluster.node(node),
        claims=(unallocated(proposal.claim),),
        classes=cluster.classes,
        pools=pools,
        usage=cluster.ledger.use_for(proposal.uid),
        features=cluster.features,
        fixed=_fixed(proposal, cluster.driver),
        pinned_subrequests=_pinned(proposal),
        excluded=_quarantine(proposal, pools, cluster.ledger, now),
        driver=cluster.driver,
    )


def _quarantine(
    proposal: Proposal, pools: Iterable[Pool], ledger: Ledger, now: float
) -> frozenset[DeviceId]:
    """Devices of these pools that are not to be chosen anew; what the scheduler picked may stay."""
    released = ledger.quarantined([one.id for pool in pools for one in pool.devices], now)
    return released.difference(result.device_id() for result in proposal.results)


def _keep(proposal: Proposal, cluster: Cluster, now: float) -> Ruling:
    """The scheduler's own choice, if nobody else has any of it."""
    mine = [result for result in proposal.results if result.driver == cluster.driver]
    reason = remaking.overbooked(mine, cluster.ledger.use_for(proposal.uid), cluster.inventory)
    if reason is not None:
        return _deny(proposal, cluster, reason, cause=Cause.IN_USE, now=now)
    return Allow(results=proposal.results)


def _swap(
    proposal: Proposal, cluster: Cluster, outcome: Allocated, share_id: Callable[[], str]
) -> Ruling:
    """The best choice in the place of the scheduler's."""
    chosen = remaking.replacements(proposal.results, outcome.allocations[0].devices.results)
    stored = tuple(
        remaking.remade(old, result, share_id) if ours(old, cluster.driver) else old
        for old, result in zip(proposal.results, chosen, strict=True)
    )
    reason = remaking.overbooked(
        [result for result in stored if result.driver == cluster.driver],
        cluster.ledger.use_for(proposal.uid),
        cluster.inventory,
    )
    if reason is not None:
        # The allocator and this check disagree: never store what one of them finds wrong.
        return Deny(_sentence(proposal, reason), Cause.CHECKS_DISAGREE)
    return Allow(
        patch=remaking.patch(proposal.results, stored),
        results=stored,
        explanation=outcome.explanation,
    )


def _deny(proposal: Proposal, cluster: Cluster, reason: str, *, cause: Cause, now: float) -> Deny:
    believed_free = _believed_free(proposal, cluster, now)
    return Deny(_sentence(proposal, reason), cause, believed_free=believed_free)


def _sentence(proposal: Proposal, reason: str) -> str:
    allocation = proposal.claim.status.allocation
    node = node_of(allocation.node_selector) if allocation is not None else None
    return (
        f"claim {proposal.key} cannot have devices of node {node or '(several)'}: {reason}; "
        "the scheduler will try again"
    )


def _believed_free(proposal: Proposal, cluster: Cluster, now: float) -> frozenset[DeviceId]:
    """Whole devices that the scheduler picked although it must have seen their holder (rule 10)."""
    held = {
        result.device_id(): cluster.ledger.holder(result.device_id())
        for result in proposal.results
        if ours(result, cluster.driver) and result.share_id is None
    }
    return frozenset(
        device
        for device, holder in held.items()
        if holder is not None and now - holder.since >= SCHEDULER_HAS_SEEN_S
    )


def _fixed(proposal: Proposal, driver: str) -> dict[tuple[int, str], Results]:
    """What stays as the scheduler chose it: other drivers, admin access, mode All."""
    fixed: dict[tuple[int, str], Results] = {}
    for name in dict.fromkeys(result.request for result in proposal.results):
        part = tuple(result for result in proposal.results if result.request == name)
        asked = request_of(proposal.claim, name)
        takes_all = asked is not None and asked.allocation_mode == "All"
        if takes_all or not all(ours(result, driver) for result in part):
            fixed[(0, name)] = part
    return fixed


def _pinned(proposal: Proposal) -> dict[tuple[int, str], str]:
    """The alternatives that the scheduler chose."""
    names = dict.fromkeys(result.request for result in proposal.results)
    split = (name.split("/", 1) for name in names if "/" in name)
    return {(0, request): subrequest for request, subrequest in split}


def request_of(claim: ResourceClaim, name: str) -> ExactDeviceRequest | DeviceSubRequest | None:
    """What a result's `request` stands for: `req`, or `req/sub` for an alternative."""
    main, _, sub = name.partition("/")
    for request in claim.spec.devices.requests:
        if request.name == main:
            return next(
                (option for option in request.first_available if option.name == sub),
                request.exactly,
            )
    return None


def unallocated(claim: ResourceClaim) -> ResourceClaim:
    """The claim as it was asked for."""
    return msgspec.structs.replace(claim, status=ResourceClaimStatus())
