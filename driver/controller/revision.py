"""Keeping nominations true: pods that wait for the scheduler get the node that fits now.

A pod that found no node gets one when capacity is freed; one whose node has filled up meanwhile
gets another, or none. Afterwards the scheduler has the last word, as ever.
"""

import asyncio
from typing import Never

import msgspec
import structlog

from driver.controller.cluster import Cluster
from driver.controller.gates import gated, plan_in_steps
from driver.controller.needs import needs
from driver.controller.nominations import Nomination
from driver.controller.planner import Plan, Planner
from driver.controller.podqueue import turn
from driver.controller.podwriter import PodWriter, nominate, take_back
from driver.controller.telling import Tells, key_of, tell
from driver.kube.backoff import Clock, SystemClock
from driver.kube.errors import NotFound
from driver.model.core import Pod
from driver.model.errors import QuadrantError
from driver.model.ids import ClaimUid
from driver.obs.logging import operation

_log = structlog.get_logger(__name__)


class Rhythm(msgspec.Struct, frozen=True, kw_only=True):
    """When pods are looked at again, in seconds.

    All that changes within `between` is one occasion. A nomination is left alone until it is
    `settled_after` old: most are used by then. After a refusal the scheduler takes its nomination
    back, and would take ours with it, were it there before `after_refusal`.
    """

    between: float = 0.25
    # A look at all pods may take one part in so many of the time.
    share: float = 5.0
    settled_after: float = 1.0
    after_refusal: float = 0.4
    writes: int = 16


class _Write(msgspec.Struct, frozen=True):
    """What follows from a decision; `was` is the nomination before it, if there was one.

    `flow` is the operation of the decision, which goes on with the write.
    """

    pod: Pod
    plan: Plan
    was: str = ""
    flow: str = ""


class Revision:
    """Looks after pods that are neither gated nor bound; `run` it while this process leads.

    It is told of what has been entered into the cluster's state already.
    """

    def __init__(
        self,
        cluster: Cluster,
        planner: Planner,
        *,
        writer: PodWriter,
        tells: Tells,
        rhythm: Rhythm | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._cluster = cluster
        self._planner = planner
        self._writer = writer
        self._tells = tells
        self._rhythm = rhythm or Rhythm()
        self._clock = clock or SystemClock()
        self._pending: set[str] = set()
        # Since when a nomination has been known.
        self._since: dict[str, float] = {}
        # Pods whose status was seen with our nomination, and the nodes that the scheduler would
        # not have for a pod, at which version of the node.
        self._shown: dict[str, str] = {}
        self._turned_down: dict[str, tuple[str, int]] = {}
        # A nomination was too young to be looked at though its node has changed.
        self._unsettled = False
        self._refused: asyncio.Queue[tuple[float, str]] = asyncio.Queue()

    # What happened

    def pod_changed(self, pod: Pod) -> None:
        """A pod was added or has changed."""
        if not _pending(pod):
            self.pod_gone(pod.metadata.uid)
            return
        self._pending.add(pod.metadata.uid)
        self._compare(pod)

    def pod_gone(self, uid: str) -> None:
        """A pod is gone, or does not wait for the scheduler."""
        self._pending.discard(uid)
        self._since.pop(uid, None)
        self._shown.pop(uid, None)
        self._turned_down.pop(uid, None)

    def refused(self, uid: str) -> None:
        """A commit for this pod was refused: give it a node that fits, soon (rule 9)."""
        self._refused.put_nowait((self._clock.now() + self._rhythm.after_refusal, uid))

    def _compare(self, pod: Pod) -> None:
        """See whether the scheduler has taken our nomination back."""
        uid = pod.metadata.uid
        nomination = self._cluster.nominations.get(uid)
        if nomination is None:
            return
        self._since.setdefault(uid, self._clock.now())
        if pod.status.nominated_node_name == nomination.node:
            self._shown[uid] = nomination.node
        elif self._shown.get(uid) == nomination.node:
            self._forget(uid)
            self._cluster.facts.touch(nomination.node)
            # Until something changes there, the node would be turned down again.
            version = self._cluster.facts.at(nomination.node)
            self._turned_down[uid] = (nomination.node, version)

    # What it does about it

    async def run(self) -> Never:
        """Revise for ever."""
        for pod in list(self._cluster.pods.values()):
            self.pod_changed(pod)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._after_refusals())
            tasks.create_task(self._when_changed())
        raise AssertionError("revision never ends by itself")

    async def _when_changed(self) -> Never:
        seen = -1
        while True:
            began = self._clock.now()
            now = self._cluster.facts.now
            if now != seen or self._unsettled:
                self._unsettled = False
                await self.revise()
                seen = now
            took = self._clock.now() - began
            await self._clock.sleep(max(self._rhythm.between, took * (self._rhythm.share - 1)))

    async def _after_refusals(self) -> Never:
        while True:
            due, uid = await self._refused.get()
            await self._clock.sleep(max(0.0, due - self._clock.now()))
            pod = self._cluster.pods.get(uid)
            if pod is not None and uid in self._pending and not self._in_hand(pod):
                self._turned_down.pop(uid, None)
                await self._write_all([await self._place(pod, was="")])

    async def revise(self) -> None:
        """Look at all waiting pods once, in the order in which the scheduler takes them.

        Of pods that ask the same and fit nowhere, only the first is planned.
        """
        hopeless: set[bytes] = set()
        writes: list[_Write | None] = []
        pods = [pod for uid in self._pending if (pod := self._cluster.pods.get(uid)) is not None]
        for pod in sorted(pods, key=turn):
            try:
                writes.append(await self._revise(pod, hopeless))
            except QuadrantError as error:
                _log.debug("pod left as it is", pod=key_of(pod), why=str(error))
            except Exception:  # noqa: BLE001 # whatever it is, it is about one pod
                _log.exception("pod left as it is", pod=key_of(pod))
            await self._clock.sleep(0)
        await self._write_all(writes)

    async def _revise(self, pod: Pod, hopeless: set[bytes]) -> _Write | None:
        uid = pod.metadata.uid
        nomination = self._cluster.nominations.get(uid)
        if not self._is_due(pod, nomination):
            return None
        before = nomination.node if nomination is not None else pod.status.nominated_node_name
        if before:
            self._planner.withdraw(uid)
            plan = self._planner.stays(pod, before)
            if plan is not None:
                self._expect(pod, plan)
                return None
            if nomination is None:
                # The scheduler's own, or from before this process led: the scheduler finds out.
                return None
        question = self._planner.question(pod)
        if question is None or question in hopeless:
            return _Write(pod, Plan(), was=before) if before else None
        write = await self._place(pod, was=before)
        if write.plan.fits_nowhere:
            hopeless.add(question)
        return write

    def _is_due(self, pod: Pod, nomination: Nomination | None) -> bool:
        uid = pod.metadata.uid
        if uid not in self._pending or self._in_hand(pod):
            return False
        if nomination is None:
            return True
        since = self._since.setdefault(uid, self._clock.now())
        if self._cluster.facts.at(nomination.node) <= nomination.version:
            return False
        settled = self._clock.now() - since >= self._rhythm.settled_after
        self._unsettled |= not settled
        return settled

    def _in_hand(self, pod: Pod) -> bool:
        """Whether there is nothing to choose now: all is allocated, being allocated, or missing."""
        needed = needs(pod, self._cluster)
        return (
            bool(needed.missing)
            or not needed.waiting
            or any(
                self._cluster.ledger.answered(ClaimUid(claim.metadata.uid))
                for claim in needed.waiting
            )
        )

    async def _place(self, pod: Pod, *, was: str) -> _Write:
        """Choose the best node anew; what is to be written then."""
        self._forget(pod.metadata.uid)
        with operation() as flow:
            plan = await plan_in_steps(self._planner, pod, self._clock)
        if pod.metadata.uid not in self._pending:
            # It was bound or went meanwhile; a bound pod must keep its place on its node.
            return _Write(pod, Plan())
        if plan.node is not None and self._turned_down.get(pod.metadata.uid) == (
            plan.node,
            self._cluster.facts.at(plan.node),
        ):
            plan = Plan(why=f"the scheduler has turned node {plan.node} down")
        if plan.node is not None:
            self._expect(pod, plan)
        return _Write(pod, plan, was=was, flow=flow)

    def _expect(self, pod: Pod, plan: Plan) -> None:
        if plan.node is not None:
            self._planner.nominate(pod, plan)
            self._since[pod.metadata.uid] = self._clock.now()

    def _forget(self, uid: str) -> None:
        self._planner.withdraw(uid)
        self._since.pop(uid, None)
        # A nomination that is written anew must be seen before it can be missed.
        self._shown.pop(uid, None)

    # Writes

    async def _write_all(self, writes: list[_Write | None]) -> None:
        slots = asyncio.Semaphore(self._rhythm.writes)

        async def in_turn(write: _Write) -> None:
            async with slots:
                with operation(write.flow):
                    await self._write(write)

        async with asyncio.TaskGroup() as tasks:
            for write in writes:
                if write is not None:
                    tasks.create_task(in_turn(write))

    async def _write(self, write: _Write) -> None:
        pod, node = write.pod, write.plan.node
        try:
            if node is not None:
                if await nominate(self._writer, pod, node):
                    tell(self._tells, pod, write.plan)
                else:
                    self._forget(pod.metadata.uid)
            elif write.was:
                await take_back(self._writer, pod, write.was)
        except NotFound:
            self._forget(pod.metadata.uid)


def _pending(pod: Pod) -> bool:
    """Whether the scheduler is to find a node for the pod."""
    return not (pod.finished or pod.spec.node_name or pod.metadata.deletion_timestamp or gated(pod))
