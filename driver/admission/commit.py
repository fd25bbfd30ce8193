"""POST /commit: one answer to the API server about one status update of a claim.

A thin shell around `driver.controller.commit.decide`: it asks whether we may answer at all, gives
the decision its clock and its dice, and does what has to follow a refusal. When in doubt it
refuses; the scheduler tries again.
"""

import asyncio
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

import structlog

from driver.admission.server import Allowed, Answer, Call, Denied
from driver.controller.cluster import Cluster
from driver.controller.commit import Allow, Cause, Deny, Ruling, decide
from driver.controller.proposal import Proposal, read
from driver.controller.strangers import Strangers, consumer
from driver.model import names
from driver.model.errors import InvalidObjectError, QuadrantError
from driver.model.ids import DeviceId, ObjectKey
from driver.obs import tracing
from driver.obs.metrics import ControllerMetrics
from driver.wire.admission import AdmissionRequest

_log = structlog.get_logger(__name__)

# Within this time our watch shows a version that the API server asks about; mostly it is a few ms.
# It counts from the beginning of the question, so that time is left for what comes after.
SHOWN_WITHIN_S = 3.0
LOOK_AGAIN_S = 0.002
# A take-over is over within a second, mostly. The question waits for it: a refusal would put the
# pod off for longer, and a burst of them would slow the take-over down.
TAKEN_OVER_WITHIN_S = 3.0
LOOK_FOR_TERM_S = 0.05
# Rule 8: how long the watch may take to show our mark, and how long the scheduler after that.
MARK_SEEN_WITHIN_S = 2.0
SCHEDULER_LAG_S = 0.3


class Term(Protocol):
    """Whether this process is the one that answers."""

    def taking_over(self, now: float) -> bool:
        """Whether it soon will be."""

    def refusal(self, now: float) -> str | None:
        """Why it is not (a sentence), or None when it is."""


class Aftermath(Protocol):
    """What follows a ruling and must not delay it. All calls return at once."""

    def allocated(self, proposal: Proposal, ruling: Allow) -> None:
        """Tell the user what was chosen and why."""

    def denied(self, proposal: Proposal, ruling: Deny) -> None:
        """Tell the user, and nominate a node that fits (rule 9)."""

    def believed_free(self, devices: frozenset[DeviceId]) -> None:
        """Keep the scheduler away from devices that it wrongly believes free (rule 10)."""


class Claims(Protocol):
    """The one write that a refusal may need."""

    async def mark(self, claim: ObjectKey) -> int:
        """Give the claim a new resource version by an annotation; that version."""


class CommitHook:
    """Answers `/commit`."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        term: Term,
        claims: Claims,
        strangers: Strangers,
        aftermath: Aftermath,
        metrics: ControllerMetrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._term = term
        self._claims = claims
        self._strangers = strangers
        self._aftermath = aftermath
        self._metrics = metrics
        self._clock = clock

    async def review(self, request: AdmissionRequest, call: Call) -> Answer:
        """The answer to one review; what it raises is a refusal (see `Route.fails_closed`)."""
        try:
            proposal = read(request)
        except InvalidObjectError as error:
            self._metrics.reviews.labels("unreadable").inc()
            return Denied(f"claim {request.namespace}/{request.name} cannot be judged: {error}")
        if proposal is None:
            return Allowed()
        with tracing.span("commit", consumer(proposal.claim)[1], claim=str(proposal.key)) as span:
            ruling = await self._ruling(proposal, dry_run=request.dry_run)
            span.say(result=_result(ruling), dry_run=request.dry_run)
        if not request.dry_run:
            self._count(ruling)
        if isinstance(ruling, Allow):
            call.on_lost(
                lambda: self._cluster.ledger.take_back(proposal.uid, ruling.answer, self._clock())
            )
            return self._allow(proposal, ruling, dry_run=request.dry_run)
        if not request.dry_run:
            await self._refuse(proposal, ruling)
        return self._denied(ruling.reason)

    def _allow(self, proposal: Proposal, ruling: Allow, *, dry_run: bool) -> Answer:
        # The deciding itself takes time; past the deadline another may already be answering.
        refusal = self._term.refusal(self._clock())
        if refusal is not None:
            return self._denied(f"claim {proposal.key}: {refusal}")
        if ruling.explanation is not None and not dry_run:
            self._aftermath.allocated(proposal, ruling)
        return Allowed(tuple(ruling.patch))

    def _denied(self, reason: str) -> Denied:
        # Whoever may not answer ends the connection: the next question may reach the leader.
        return Denied(reason, close=self._term.refusal(self._clock()) is not None)

    async def _ruling(self, proposal: Proposal, *, dry_run: bool) -> Ruling:
        until = asyncio.get_running_loop().time() + SHOWN_WITHIN_S
        await self._taken_over()
        if self._term.refusal(self._clock()) is None:
            if not await self._is_shown(proposal, until=until):
                return Deny(
                    f"claim {proposal.key}: its version {proposal.base} has not reached the "
                    "Quadrant controller; it will be retried",
                    Cause.NOT_SEEN_YET,
                )
            if not dry_run:
                await self._strangers.meet(proposal.claim)
        return self._rule(proposal, dry_run=dry_run)

    async def _taken_over(self) -> None:
        """Wait while we take over; for some seconds at most, after which we refuse."""
        with suppress(TimeoutError):
            async with asyncio.timeout(TAKEN_OVER_WITHIN_S):
                # The term is pure and has no events; this wait is rare and short.
                while self._term.taking_over(self._clock()):  # noqa: ASYNC110
                    await asyncio.sleep(LOOK_FOR_TERM_S)

    async def _is_shown(self, proposal: Proposal, *, until: float) -> bool:
        """Whether our own watch has shown the claim at this version, or at a later one.

        A review proves nothing: whoever reaches our port can send one, about a claim of any UID,
        version and state. What it says of the past is believed only where the watch says the same.
        """
        try:
            async with asyncio.timeout_at(until):
                # The cluster's state has no events for one claim; this wait is short.
                while not self._knows(proposal):  # noqa: ASYNC110
                    await asyncio.sleep(LOOK_AGAIN_S)
        except TimeoutError:
            return False
        return True

    def _knows(self, proposal: Proposal) -> bool:
        known = self._cluster.claims.get(proposal.key)
        return (
            known is not None
            and known.metadata.uid == proposal.uid
            and int(known.metadata.resource_version) >= proposal.base
        )

    def _rule(self, proposal: Proposal, *, dry_run: bool) -> Ruling:
        now = self._clock()
        refusal = self._term.refusal(now)
        if refusal is not None:
            return Deny(f"claim {proposal.key}: {refusal}", Cause.NOT_LEADING)
        with self._metrics.decisions.time():
            return decide(
                proposal,
                cluster=self._cluster,
                now=now,
                share_id=lambda: str(uuid.uuid4()),
                dry_run=dry_run,
            )

    def _count(self, ruling: Ruling) -> None:
        self._metrics.reviews.labels(_result(ruling)).inc()
        if isinstance(ruling, Deny):
            self._metrics.denials.labels(ruling.cause).inc()
            for kind in ruling.rejected:
                self._metrics.rejections.labels("gpu", kind).inc()
        elif (found := ruling.explanation) is not None:
            # Several policies may be joined: the first one decides but for ties.
            policy = found.policy.partition(",")[0].strip()
            self._metrics.scores.labels(policy).observe(found.score.total)
        if _is_outdated(ruling):
            self._metrics.conflicts.labels("review").inc()

    async def _refuse(self, proposal: Proposal, ruling: Deny) -> None:
        _log.info("commit denied", claim=str(proposal.key), why=ruling.reason)
        self._aftermath.denied(proposal, ruling)
        if ruling.believed_free:
            self._aftermath.believed_free(ruling.believed_free)
        if names.EXTENDED_CLAIM in proposal.claim.metadata.annotations:
            await self._let_the_scheduler_see(proposal)

    async def _let_the_scheduler_see(self, proposal: Proposal) -> None:
        """Rule 8: the scheduler must see a special claim before it deletes it.

        Else its removal makes devices look free in the scheduler's book that are not.
        """
        try:
            version = await self._claims.mark(proposal.key)
            async with asyncio.timeout(MARK_SEEN_WITHIN_S):
                # The ledger is pure and has no events; this wait is rare and short.
                while self._cluster.ledger.seen(proposal.uid) < version:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            await asyncio.sleep(SCHEDULER_LAG_S)
        except (QuadrantError, TimeoutError) as error:
            _log.info("refused claim not marked", claim=str(proposal.key), why=str(error))


def _is_outdated(ruling: Ruling) -> bool:
    """Whether the claim has moved on since the write that is reviewed was made."""
    if isinstance(ruling, Deny):
        return ruling.cause is Cause.REFUSED_BEFORE
    return ruling.outdated


def _result(ruling: Ruling) -> str:
    """A choice of ours, the scheduler's own, nothing to say, or a refusal."""
    if isinstance(ruling, Deny):
        return "denied"
    if ruling.explanation is not None:
        return "chosen"
    return "kept" if ruling.results else "passed"
