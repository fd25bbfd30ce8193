"""Which of several replicas leads, and until when it may act on that: the decision alone. Pure.

Modelled on client-go's leader election. A Lease object names the holder; whoever sees it unchanged
for its whole duration may take it. The times compared are a replica's own monotonic seconds of when
it saw something; the wall clock times of the record are for people. A leader stops acting at its
renew deadline, well before the duration that the others wait for has passed, so two never act at
once, whatever their clocks say.
"""

import enum

import msgspec

from driver.model.api import ApiStruct, ObjectMeta


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds; look < retry < renew_deadline < duration.

    Shorter than client-go's 15, 10 and 2: while nobody leads no claim of ours is allocated. After a
    renewal there are three more tries before the deadline. Losing a lease for nothing is cheap, as
    the next leader answers within a second or two.
    """

    # How long others wait for a holder of whom nothing is seen.
    duration: float = 10.0
    # How long a holder acts on its last renewal.
    renew_deadline: float = 7.0
    # How often a holder renews.
    retry: float = 2.0
    # How often the others look.
    look: float = 1.0


class LeaseSpec(ApiStruct, frozen=True, kw_only=True):
    """The record that the replicas share."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int = 0


class Lease(ApiStruct, frozen=True, kw_only=True):
    """The object that carries it."""

    metadata: ObjectMeta
    spec: LeaseSpec = LeaseSpec()


class Observation(msgspec.Struct, frozen=True):
    """What the record says, and since when (monotonic) it has said so without a change."""

    spec: LeaseSpec | None
    since: float


class Step(enum.Enum):
    """What to do next."""

    WAIT = "wait"
    ACQUIRE = "acquire"
    RENEW = "renew"
    STEP_DOWN = "step down"


def decide(
    observed: Observation, *, identity: str, renewed_at: float | None, now: float, timing: Timing
) -> Step:
    """The next step of a replica.

    `renewed_at` is when it began its last renewal that went through; None if it does not lead.
    The identity must be new for every process, so that a record in its name is its own.
    """
    spec = observed.spec
    holder = spec.holder_identity if spec else ""
    if renewed_at is not None:
        late = now >= renewed_at + timing.renew_deadline
        return Step.STEP_DOWN if late or holder != identity else Step.RENEW
    # Our name without our leading: a write went through whose answer we never got.
    if spec is None or holder in ("", identity):
        return Step.ACQUIRE
    return Step.ACQUIRE if now >= runs_out(observed, timing) else Step.WAIT


def runs_out(observed: Observation, timing: Timing) -> float:
    """When a lease that nobody renews any more may be taken from its holder."""
    told = observed.spec.lease_duration_seconds if observed.spec else 0
    return observed.since + (told or timing.duration)
