"""Both axes of one question: what was chosen, what came next, what is out of the question.

The same verdicts and searches as in the controller. `given` is what the claims have already; then
that is the chosen one, whatever would be chosen today.
"""

from collections.abc import Iterator, Mapping

import msgspec
from msgspec.structs import replace

from driver.allocator.outcome import Allocated, Unsatisfiable, choice, node_view
from driver.cli.explanation.report import (
    Axis,
    Option,
    PolicyScore,
    Rejected,
    ScoreTerm,
)
from driver.controller.cluster import Cluster
from driver.controller.kinds import Makes
from driver.controller.planner import NodeRejection, rejections
from driver.controller.policies import Setting
from driver.controller.question import Asked, problem
from driver.controller.verdicts import Verdicts
from driver.model.allocation import Rejection, RejectionKind, Score
from driver.model.errors import AllocationError
from driver.model.ids import DeviceId
from driver.model.resourceclaim import AllocationResult, DeviceRequestAllocationResult
from driver.policy.policy import Policy

_RUNNERS_UP = 3
_DIGITS = 9
_Devices = tuple[DeviceId, ...]


class Given(msgspec.Struct, frozen=True):
    """What the claims have, by UID, and on which node; empty where nothing is allocated."""

    node: str | None = None
    allocations: Mapping[str, AllocationResult] = {}


class Inquiry:
    """One question, put to all nodes of the cluster."""

    def __init__(self, asked: Asked, cluster: Cluster, given: Given) -> None:
        self._asked = asked
        self._cluster = cluster
        self._given = given
        weighting = asked.policies.weighting()
        self._nodes = cluster.scoring.node_scorer(asked.question.node_policy, weighting)
        self._devices = cluster.scoring.objective(asked.question.gpu_policy, weighting)
        self._verdicts = Verdicts(asked.question, cluster, Makes())
        self._verdicts.refresh()
        self.rejections: tuple[NodeRejection, ...] = tuple(rejections(self._verdicts))

    def best_node(self) -> str | None:
        """The node that the claims have, or else the best one; None where no node fits."""
        if self._given.node is not None:
            return self._given.node
        for name, _ in self._verdicts.best(1 + _RUNNERS_UP):
            if isinstance(self._search(name), Allocated):
                return name
        return None

    def fits_when_empty(self) -> str | None:
        """A node that would do if nobody used its devices; None where there is none."""
        lacking = (name for name, misfit in self._verdicts.misfits() if misfit.devices)
        return next(filter(self._verdicts.fits_when_empty, lacking), None)

    def stops_with_error(self) -> bool:
        """Whether no search gets as far as the devices; what is wrong with a claim is so on all."""
        first = next((name for name, _ in self._verdicts.misfits()), None)
        return first is not None and isinstance(self._search(first), AllocationError)

    def node_axis(self) -> Axis:
        """The choice of the node. Where the policy is none, all nodes that fit are runners-up."""
        policy, chosen = self._asked.question.node_policy, self.best_node()
        best = self._verdicts.best(1 + _RUNNERS_UP)
        score = next((fits.score for name, fits in best if name == chosen), Score())
        if self._given.node is not None and chosen is not None:
            score = self._given_score(self._nodes, chosen)
        elif self._nodes is None:
            chosen = None
        others = [(name, fits.score) for name, fits in best if name != chosen][:_RUNNERS_UP]
        scored = policy if self._nodes is not None else ""
        return replace(
            _said(self._asked.policies.node, self._asked.policies.weights),
            chosen=None if chosen is None else option((chosen,), scored, score),
            runners_up=tuple(option((name,), scored, one, score) for name, one in others),
            rejected=tuple(
                Rejected(reason=one.reason, count=one.count, example=one.example, remedy=one.remedy)
                for one in self.rejections
            ),
        )

    def device_axis(self, node: str | None) -> Axis:
        """The choice of devices on this node; without one, why no device of any node does."""
        said = _said(self._asked.policies.gpu, self._asked.policies.weights)
        if node is None:
            return replace(said, rejected=tuple(_rejected(self._all_rejections())))
        outcome = self._search(node)
        found = list(_options(outcome)) if isinstance(outcome, Allocated) else []
        mine = self._given_devices()
        if mine:
            score = self._given_score(self._devices, node)
        else:
            mine, score = found[0] if found else ((), Score())
        scored = self._asked.question.gpu_policy if self._devices is not None else ""
        others = [(devices, one) for devices, one in found if set(devices) != set(mine)]
        return replace(
            said,
            chosen=option(_names(mine), scored, score) if mine else None,
            runners_up=tuple(
                option(_names(devices), scored, one, score) for devices, one in others[:_RUNNERS_UP]
            ),
            rejected=tuple(_rejected(_rejections_of(outcome))),
            stopped_after=_stopped_after(outcome),
        )

    def _search(self, node: str) -> Allocated | Unsatisfiable | AllocationError:
        try:
            return self._verdicts.allocate(node)
        except AllocationError as error:
            return error

    def _given_devices(self) -> _Devices:
        return tuple(
            result.device_id()
            for claim in self._asked.question.claims
            for result in self._given_results(claim.metadata.uid)
        )

    def _given_results(self, uid: str) -> Iterator[DeviceRequestAllocationResult]:
        allocation = self._given.allocations.get(uid)
        yield from allocation.devices.results if allocation is not None else ()

    def _given_score(self, policy: Policy | None, node: str) -> Score:
        """What a policy says, today, to the devices that the claims have."""
        if policy is None:
            return Score()
        asked = problem(self._asked.question, self._cluster.node(node), self._cluster)
        allocations = [
            self._given.allocations[claim.metadata.uid]
            for claim in self._asked.question.claims
            if claim.metadata.uid in self._given.allocations
        ]
        return policy.score(node_view(asked), choice(asked, allocations))

    def _all_rejections(self) -> Iterator[Rejection]:
        """Why devices are no candidates, on all nodes that lack devices together."""
        found: dict[str, Rejection] = {}
        for name, misfit in self._verdicts.misfits():
            for one in _rejections_of(self._search(name)) if misfit.devices else ():
                known = found.get(one.reason)
                count = one.count + (known.count if known is not None else 0)
                first = known if known is not None else one
                found[one.reason] = replace(first, count=count)
        yield from sorted(found.values(), key=lambda one: (-one.count, one.reason))


def option(names: tuple[str, ...], policy: str, score: Score, best: Score | None = None) -> Option:
    """One possibility with its scores (no policy: none), and how far it is behind the best."""
    policies = policy.split(",") if policy else []
    scores = tuple(
        PolicyScore(
            policy=name.strip(),
            total=round(one.total, _DIGITS),
            # Adding zero makes a plain one of what is minus zero.
            terms=tuple(ScoreTerm(name=term.name, points=term.points + 0.0) for term in one.terms),
        )
        for name, one in zip(policies, (score, *score.then), strict=False)
    )
    ahead = () if best is None else (best, *best.then)
    behind = tuple(
        round(one.total - mine.total, _DIGITS) for one, mine in zip(ahead, scores, strict=False)
    )
    return Option(names=names, scores=scores, behind=behind)


def _said(policy: Setting, weights: Setting) -> Axis:
    """An axis with nothing but who decides on it."""
    return Axis(
        policy=policy.value,
        policy_from=policy.where,
        weights=weights.value,
        weights_from=weights.where if weights.value else "",
    )


def _options(outcome: Allocated) -> Iterator[tuple[_Devices, Score]]:
    """The best set of devices and the next ones."""
    best = tuple(
        result.device_id()
        for allocation in outcome.allocations
        for result in allocation.devices.results
    )
    yield best, outcome.explanation.score
    for one in outcome.explanation.runners_up:
        yield one.devices, one.score


def _rejections_of(
    outcome: Allocated | Unsatisfiable | AllocationError,
) -> tuple[Rejection, ...]:
    if isinstance(outcome, AllocationError):
        reason = f"allocation stops with an error: {outcome}"
        return (Rejection(reason, RejectionKind.ERROR, 1),)
    if isinstance(outcome, Unsatisfiable):
        in_all = (Rejection(outcome.reason(), outcome.kinds()[0], 1),)
        return in_all if outcome.truncated else outcome.rejections or in_all
    return outcome.explanation.rejections


def _stopped_after(outcome: Allocated | Unsatisfiable | AllocationError) -> int:
    return outcome.explanation.stopped_after if isinstance(outcome, Allocated) else 0


def _rejected(found: Iterator[Rejection] | tuple[Rejection, ...]) -> Iterator[Rejected]:
    for one in found:
        example = f"{one.example.pool}/{one.example.device}" if one.example is not None else ""
        yield Rejected(reason=one.reason, count=one.count, example=example.rstrip("/"))


def _names(devices: _Devices) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"{device.pool}/{device.device}" for device in devices))
