"""Gated pods: each gets the best node in turn, and its gate is lifted.

Decisions follow each other, so that each counts with the ones before it; the writes that they lead
to overlap. Whatever goes wrong, no pod keeps the gate for want of a nomination: without one the
scheduler finds a node by itself. What becomes of a pod afterwards is `driver.controller.revision`'s
business.
"""

import asyncio
import datetime as dt
import random
import time
from collections.abc import Coroutine
from typing import Never

import msgspec
import structlog

from driver.controller.cluster import Cluster
from driver.controller.planner import Plan, Planner
from driver.controller.podqueue import PodQueue
from driver.controller.podwriter import PodWriter, lift_gate, nominate
from driver.controller.telling import Tells, key_of, tell
from driver.kube.backoff import Backoff, Clock, Random, SystemClock
from driver.kube.errors import KubeError, NotFound
from driver.model import names
from driver.model.core import Pod
from driver.model.errors import QuadrantError
from driver.model.resourceclaim import ResourceClaim
from driver.obs import tracing
from driver.obs.logging import operation
from driver.obs.metrics import ControllerMetrics

_log = structlog.get_logger(__name__)
# How much work is done in one go (see `Verdicts.refresh`), one to three milliseconds; afterwards
# commits get their turn.
WORK_AT_ONCE = 30
# While nodes change faster than they are asked, a decision is not put off for ever.
_MOST_ROUNDS = 10_000


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How many pods are written at once, and the waits after failures in seconds."""

    writes: int = 16
    first_retry: float = 0.2
    longest_retry: float = 30.0


class Gates:
    """Places gated pods; `run` it as a task while this process leads.

    It is told of what has been entered into the cluster's state already, whether it runs or not.
    """

    def __init__(
        self,
        cluster: Cluster,
        planner: Planner,
        *,
        writer: PodWriter,
        tells: Tells,
        metrics: ControllerMetrics,
        pace: Pace | None = None,
        clock: Clock | None = None,
        jitter: Random = random.random,
    ) -> None:
        self._cluster = cluster
        self._planner = planner
        self._writer = writer
        self._tells = tells
        self._metrics = metrics
        self._pace = pace or Pace()
        self._clock = clock or SystemClock()
        self._jitter = jitter
        self._queue = PodQueue()
        self._awake = asyncio.Event()
        self._slots = asyncio.Semaphore(self._pace.writes)
        # Pods that wait for a claim to be made, by namespace.
        self._parked: dict[str, set[str]] = {}
        # Pods that are being written, and those whose gate is lifted though the watch shows it.
        self._busy: set[str] = set()
        self._lifted: set[str] = set()
        self._failing: dict[str, Backoff] = {}

    # What happened

    def pod_changed(self, pod: Pod) -> None:
        """A pod was added or has changed."""
        uid = pod.metadata.uid
        if not gated(pod):
            self.pod_gone(uid)
        elif uid not in self._busy and uid not in self._lifted:
            self._queue.put(pod)
            self._awake.set()

    def pod_gone(self, uid: str) -> None:
        """A pod is gone, or has no gate of ours any more."""
        self._queue.drop(uid)
        self._lifted.discard(uid)
        self._failing.pop(uid, None)
        for parked in self._parked.values():
            parked.discard(uid)

    def claim_changed(self, claim: ResourceClaim) -> None:
        """A claim was added or has changed: somebody may have waited for it."""
        for uid in self._parked.pop(claim.metadata.namespace, ()):
            pod = self._cluster.pods.get(uid)
            if pod is not None:
                self.pod_changed(pod)

    # What it does about it

    async def run(self) -> Never:
        """Place pods for ever. Started again, it takes up all that wait."""
        self._busy.clear()
        self._slots = asyncio.Semaphore(self._pace.writes)
        for pod in list(self._cluster.pods.values()):
            self.pod_changed(pod)
        async with asyncio.TaskGroup() as tasks:
            while True:
                # First a place for the writes, then the choice of the pod: one of a higher
                # priority that comes meanwhile goes first.
                await self._slots.acquire()
                writes = await self._place_next()
                if writes is None:
                    self._slots.release()
                else:
                    tasks.create_task(writes)

    async def _place_next(self) -> Coroutine[None, None, None] | None:
        """Decide on the next pod; the writes that follow from it."""
        while (uid := self._queue.next()) is None:
            self._awake.clear()
            await self._awake.wait()
        pod = self._cluster.pods.get(uid)
        if pod is None or not gated(pod):
            return None
        with operation() as flow:
            return await self._place(pod, flow)

    async def _place(self, pod: Pod, flow: str) -> Coroutine[None, None, None] | None:
        uid = pod.metadata.uid
        self._planner.withdraw(uid)
        with self._metrics.plans.time():
            plan = await plan_in_steps(self._planner, pod, self._clock)
        if uid not in self._cluster.pods:
            # It went meanwhile: nobody would take back what is expected for it.
            return None
        if plan.missing:
            _log.debug("pod waits", pod=key_of(pod), why=plan.why)
            self._parked.setdefault(pod.metadata.namespace, set()).add(uid)
            return None
        self._planner.nominate(pod, plan)
        self._busy.add(uid)
        return self._write(pod, plan, flow)

    async def _write(self, pod: Pod, plan: Plan, flow: str) -> None:
        with operation(flow):
            retry = await self._let_go(pod, plan)
        if retry is not None:
            await self._clock.sleep(retry.next())
        uid = pod.metadata.uid
        self._busy.discard(uid)
        latest = self._cluster.pods.get(uid)
        if latest is not None:
            self.pod_changed(latest)
        else:
            self.pod_gone(uid)

    async def _let_go(self, pod: Pod, plan: Plan) -> Backoff | None:
        """Nominate and lift the gate; where that failed, when to try again."""
        uid = pod.metadata.uid
        retry = None
        try:
            if plan.node is not None and not await nominate(self._writer, pod, plan.node):
                self._planner.withdraw(uid)
            await lift_gate(self._writer, pod)
        except NotFound:
            self._planner.withdraw(uid)
        except KubeError as error:
            # Also where the gates are others than thought: what the watch shows then counts.
            _log.warning("gate not lifted", pod=key_of(pod), error=str(error))
            retry = self._failing.setdefault(uid, self._backoff())
        else:
            self._done(pod, plan)
        finally:
            self._slots.release()
        return retry

    def _backoff(self) -> Backoff:
        pace = self._pace
        return Backoff(base=pace.first_retry, cap=pace.longest_retry, jitter=self._jitter)

    def _done(self, pod: Pod, plan: Plan) -> None:
        uid = pod.metadata.uid
        latest = self._cluster.pods.get(uid)
        if latest is not None and gated(latest):
            self._lifted.add(uid)
        tell(self._tells, pod, plan)
        self._count(pod, plan)

    def _count(self, pod: Pod, plan: Plan) -> None:
        created = created_at(pod)
        with tracing.span("place", pod.metadata.uid, began=created) as span:
            span.say(node=plan.node or "", why=plan.why)
        self._metrics.placements.labels(_result(plan)).inc()
        for kind in {kind for one in plan.rejections for kind in one.kinds}:
            self._metrics.rejections.labels("node", kind).inc()
        if created is not None:
            self._metrics.waits.observe(max(0.0, time.time() - created))


def gated(pod: Pod) -> bool:
    """Whether the pod waits for us."""
    ours = any(gate.name == names.PLACEMENT_GATE for gate in pod.spec.scheduling_gates)
    return ours and pod.metadata.deletion_timestamp is None and not pod.finished


def created_at(pod: Pod) -> float | None:
    """When the pod was created, in seconds since 1970; None where it does not say."""
    text = pod.metadata.creation_timestamp
    return seconds_of(text) if text else None


def seconds_of(timestamp: str) -> float:
    """A time of the API server in seconds since 1970."""
    return dt.datetime.fromisoformat(timestamp).timestamp()


def _result(plan: Plan) -> str:
    if plan.node is not None:
        return "nominated"
    return "fits-nowhere" if plan.fits_nowhere else "left-to-scheduler"


async def plan_in_steps(planner: Planner, pod: Pod, clock: Clock) -> Plan:
    """Plan, and let others work in between where very many nodes have to be asked.

    A pod that cannot be planned for an error in what it asks gets the reason as its plan, and so
    does one that we fail on: others must not wait for that to be mended.
    """
    try:
        for _ in range(_MOST_ROUNDS):
            if planner.prepare(pod, WORK_AT_ONCE):
                break
            await clock.sleep(0)
        return planner.plan(pod)
    except QuadrantError as error:
        return Plan(why=str(error))
    except Exception:  # noqa: BLE001 # whatever it is, it is about one pod
        _log.exception("planning failed", pod=key_of(pod))
        return Plan(why="planning it failed; the controller's log says how")
