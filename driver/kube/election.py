"""The shell around `driver.kube.lease`: reads and writes the Lease object, tells who leads.

Every write carries the resourceVersion that was read, so of two replicas that try at once only one
gets through. No call outlives the moment at which its outcome would be worthless.
"""

import asyncio
import datetime as dt
import random
from contextlib import suppress
from typing import Never, Protocol

import msgspec
import structlog

from driver.kube.backoff import Clock, Random, SystemClock
from driver.kube.errors import Conflict, KubeError, NotFound
from driver.kube.lease import Lease, LeaseSpec, Observation, Step, Timing, decide, runs_out
from driver.kube.rest import ONCE, Rest
from driver.kube.transport import Session
from driver.model.api import ObjectMeta
from driver.model.errors import InvalidObjectError
from driver.wire.decode import decode
from driver.wire.encode import encode
from driver.wire.patch import MERGE_PATCH

_log = structlog.get_logger(__name__)


class Candidate(Protocol):
    """Who is told about its own leadership, at once and in order. Must not block."""

    def acquired(self, *, silent_from: float, resumed: bool) -> None:
        """We lead. From `silent_from` on, no other replica believes that it does.

        That is now, except when there was no Lease object: somebody may have deleted it under a
        leader that finds out only when it renews, or at its deadline. `resumed`: nobody else has
        led since this process did so last.
        """
        ...

    def renewed(self, deadline: float) -> None:
        """We may act until `deadline` (monotonic), later only if told so again."""
        ...

    def lost(self) -> None:
        """We no longer lead."""
        ...


class Election:
    """One replica's part in an election; `run` it as a task, cancel it to give the lease back."""

    def __init__(  # where, who, and the sources of time and chance
        self,
        session: Session,
        candidate: Candidate,
        *,
        namespace: str,
        name: str,
        identity: str,
        timing: Timing | None = None,
        clock: Clock | None = None,
        jitter: Random = random.random,
    ) -> None:
        """`identity` must be new for every process (pod name and a random part)."""
        self._rest = Rest(session, policy=ONCE)
        self._candidate = candidate
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._name = name
        self._identity = identity
        self._timing = timing or Timing()
        self._clock = clock or SystemClock()
        self._jitter = jitter
        self._observed = Observation(None, self._clock.now())
        self._version = ""
        self._renewed_at: float | None = None
        self._tried_at = self._clock.now()
        # Which transition of the lease our last term was; None before the first one.
        self._last_term: int | None = None

    def still_leader(self, now: float) -> bool:
        """Whether this process may act at this moment of the monotonic clock."""
        renewed_at = self._renewed_at
        return renewed_at is not None and now < renewed_at + self._timing.renew_deadline

    async def run(self) -> Never:
        """Lead whenever possible, for ever. Gives the lease back when cancelled."""
        try:
            while True:
                await self._turn()
                await self._clock.sleep(self._pause())
        finally:
            await self._release()

    def _pause(self) -> float:
        now = self._clock.now()
        if self._renewed_at is not None:
            # From the beginning of the last try: a slow API server must not slow us further down.
            due = min(
                self._tried_at + self._timing.retry,
                self._renewed_at + self._timing.renew_deadline,
            )
            return max(0.0, due - now)
        # Replicas that wait for the same lease come at different times, and none comes late.
        look = self._timing.look * (1 + 0.2 * self._jitter())
        left = runs_out(self._observed, self._timing) - now
        return left if 0 < left < look else look

    async def _turn(self) -> None:
        now = self._tried_at = self._clock.now()
        if self._step(now) is Step.STEP_DOWN:
            self._lose("not renewed in time")
        limit = (self._renewed_at or now) + self._timing.renew_deadline - now
        try:
            async with asyncio.timeout(limit):
                await (self._look_and_acquire() if self._renewed_at is None else self._renew(now))
        except (KubeError, InvalidObjectError, TimeoutError) as error:
            _log.warning("lease not reached", lease=self._name, error=str(error) or "time limit")

    def _step(self, now: float) -> Step:
        return decide(
            self._observed,
            identity=self._identity,
            renewed_at=self._renewed_at,
            now=now,
            timing=self._timing,
        )

    async def _look_and_acquire(self) -> None:
        await self._look()
        began = self._clock.now()
        if self._step(began) is not Step.ACQUIRE:
            return
        before = self._observed.spec
        times = _now()
        new = LeaseSpec(
            holder_identity=self._identity,
            lease_duration_seconds=int(self._timing.duration),
            acquire_time=times,
            renew_time=times,
            lease_transitions=before.lease_transitions + 1 if before else 0,
        )
        with suppress(Conflict):
            await self._write(new, create=before is None)
            self._renewed_at = began
            _log.info("lease acquired", lease=self._name, identity=self._identity)
            # No replica, of another release either, acts for so long on its last renewal.
            wait = self._timing.duration if before is None else 0.0
            resumed = self._is_our_last_term(before)
            self._last_term = new.lease_transitions
            self._candidate.acquired(silent_from=self._clock.now() + wait, resumed=resumed)
            self._candidate.renewed(began + self._timing.renew_deadline)

    def _is_our_last_term(self, spec: LeaseSpec | None) -> bool:
        """Whether the record is still the one that we led by, so that nobody led in between."""
        return (
            spec is not None
            and spec.holder_identity == self._identity
            and spec.lease_transitions == self._last_term
        )

    async def _renew(self, began: float) -> None:
        spec = self._observed.spec
        if spec is None:
            return
        try:
            await self._write(msgspec.structs.replace(spec, renew_time=_now()))
        except (Conflict, NotFound):
            # Somebody else wrote, if only a label: look whose it is now, and go by that.
            await self._look()
            if self._step(self._clock.now()) is Step.STEP_DOWN:
                self._lose("taken by another replica, or deleted")
            return
        self._renewed_at = began
        self._candidate.renewed(began + self._timing.renew_deadline)

    def _lose(self, why: str) -> None:
        self._renewed_at = None
        _log.info("lease lost", lease=self._name, why=why)
        self._candidate.lost()

    async def _look(self) -> None:
        try:
            data = await self._rest.get(self._path, timeout=self._timing.renew_deadline / 2)
        except NotFound:
            self._observe(None)
        else:
            self._observe(decode(Lease, data))

    async def _write(self, spec: LeaseSpec, *, create: bool = False) -> None:
        limit = self._timing.renew_deadline / 2
        if create:
            kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
            body = encode(kind | {"metadata": {"name": self._name}, "spec": spec})
            data = await self._rest.create(self._collection, body, timeout=limit)
        else:
            metadata = ObjectMeta(resource_version=self._version)
            body = encode(Lease(metadata=metadata, spec=spec))
            data = await self._rest.patch(self._path, body, MERGE_PATCH, timeout=limit)
        self._observe(decode(Lease, data))

    def _observe(self, lease: Lease | None) -> None:
        spec, version = (lease.spec, lease.metadata.resource_version) if lease else (None, "")
        if spec != self._observed.spec:
            self._observed = Observation(spec, self._clock.now())
        self._version = version

    async def _release(self) -> None:
        """Let another replica take over at once; nothing depends on it."""
        if self._renewed_at is None:
            return
        self._lose("given back")
        with suppress(KubeError, InvalidObjectError, TimeoutError):
            async with asyncio.timeout(self._timing.retry):
                # A renewal may have been cut short, and have gone through all the same.
                await self._look()
                spec = self._observed.spec
                if spec is not None and spec.holder_identity == self._identity:
                    body = {"metadata": {"resourceVersion": self._version}, "spec": _FREE}
                    await self._rest.patch(self._path, encode(body), MERGE_PATCH)

    @property
    def _path(self) -> str:
        return f"{self._collection}/{self._name}"


_FREE = {"holderIdentity": "", "leaseDurationSeconds": 1}


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
