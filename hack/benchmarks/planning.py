"""How long it takes to find the best node and devices for a pod that waits.

A pod comes with a new claim; from there to the nomination that is entered is measured. Then the
claim gets its devices, the pod its node, and some other claim goes, so that the next decision finds
two nodes changed. The reference is the same in a tenth of the nodes, turn by turn.
"""

import asyncio
import gc
import itertools
import time
from collections.abc import Iterator

import msgspec

from driver.controller.gates import WORK_AT_ONCE
from driver.controller.planner import Plan, Planner
from driver.controller.warming import warm_up
from driver.model.core import Pod
from driver.model.ids import ClaimUid, ObjectKey
from driver.wire.decode import convert
from driver.wire.encode import builtins
from hack.benchmarks.figures import Figure, Section, spread
from hack.benchmarks.fleet import FEWEST, Fleet
from hack.benchmarks.stage import Stage
from hack.benchmarks.workloads import NAMESPACE, WORKLOADS, Json, Workload

LEVELS = (0.0, 0.5, 0.95)
_POLICY = "compact"
_SMALLER = 10
# There is no such node in a cluster that is full but for single cards.
NOWHERE = Workload(name="8 of 8, which no node has", count=8)


class Case(msgspec.Struct, frozen=True):
    """What pods ask for, in how full a cluster."""

    workload: Workload
    level: float

    @property
    def name(self) -> str:
        """The case in words."""
        return f"{self.workload.name}, {self.level:.0%} full"


def cases() -> Iterator[Case]:
    """All that is measured."""
    for workload, level in itertools.product(WORKLOADS, LEVELS):
        yield Case(workload, level)
    yield Case(NOWHERE, LEVELS[-1])


class Timed:
    """A stage with a planner; how long its decisions took, in seconds.

    `steps` are those of the first decision, between which others get their turn.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.planner = Planner(stage.cluster)
        self.wall: list[float] = []
        self.cpu: list[float] = []
        self.steps: list[float] = []
        self._numbers = itertools.count(1)
        # Pods that have a node, by the name of their claim.
        self._bound: dict[str, Pod] = {}

    def first(self) -> Plan:
        """The first decision of its kind, after which the others have little to look at."""
        claim, pod = self._next()
        done = False
        while not done:
            began = time.thread_time()
            done = self.planner.prepare(pod, WORK_AT_ONCE)
            self.steps.append(time.thread_time() - began)
        return self._settle(claim, pod, self._nominated(pod))

    def decide(self) -> Plan:
        """One decision is timed; what follows it is not."""
        claim, pod = self._next()
        wall, cpu = time.perf_counter(), time.thread_time()
        plan = self._nominated(pod)
        self.cpu.append(time.thread_time() - cpu)
        self.wall.append(time.perf_counter() - wall)
        return self._settle(claim, pod, plan)

    def _nominated(self, pod: Pod) -> Plan:
        while not self.planner.prepare(pod, WORK_AT_ONCE):
            pass
        plan = self.planner.plan(pod)
        self.planner.nominate(pod, plan)
        return plan

    def _next(self) -> tuple[Json, Pod]:
        name = f"pod-{next(self._numbers)}"
        claim = self.stage.fleet.workload.claim(name, version=1)
        self.stage.show(msgspec.json.encode(claim))
        pod = _pod(name)
        self.stage.cluster.put_pod(pod)
        return claim, pod

    def _settle(self, claim: Json, pod: Pod, plan: Plan) -> Plan:
        """The claim and the pod get what was planned, and another claim goes with its pod."""
        stage, name = self.stage, pod.metadata.name
        self._bound[name] = pod
        if plan.node is None:
            stage.cluster.remove_claim(_key(name), ClaimUid(f"uid-{name}"), 2, stage.now)
        else:
            stage.show(stage.stored(_allocated(claim, plan)))
            stage.cluster.put_pod(_pod(name, plan.node))
            stage.release()
        for gone in [one for one in self._bound if _key(one) not in stage.cluster.claims]:
            stage.cluster.remove_pod(self._bound.pop(gone).metadata.uid)
        return plan


def _key(claim: str) -> ObjectKey:
    return ObjectKey(NAMESPACE, claim)


def _allocated(claim: Json, plan: Plan) -> Json:
    uid = claim["metadata"]["uid"]
    allocation: Json = builtins(plan.allocations[uid])
    for result in allocation["devices"]["results"]:
        if result.get("shareID") == "":
            result["shareID"] = f"share-{uid}"
    return claim | {"status": {"allocation": allocation}}


def _pod(name: str, node: str = "") -> Pod:
    """A pod with one claim of its own name."""
    metadata = {"name": name, "namespace": NAMESPACE, "uid": f"uid-of-{name}"}
    spec: Json = {
        "containers": [{"name": "main"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
    }
    if node:
        spec["nodeName"] = node
    return convert(Pod, {"metadata": metadata | {"resourceVersion": "1"}, "spec": spec})


def measure(*, nodes: int, decisions: int, seed: int) -> Iterator[Section]:
    """So many decisions of every case, and the first ones apart."""
    small = max(FEWEST, nodes // _SMALLER)
    later: list[Figure] = []
    first: list[Figure] = []
    for case in cases():
        large, little = (_ready(case, size, seed) for size in (nodes, small))
        for one in (large, little):
            one.first()
        for _ in range(decisions):
            large.decide()
            little.decide()
        gc.unfreeze()
        later.append(_later(case, large, little))
        first.extend(_first(case, large, little))
    reference = f"at {small} nodes"
    yield Section(f"plan at {nodes} nodes x 8 GPUs", reference, tuple(later))
    yield Section(f"first plan of its kind at {nodes} nodes x 8 GPUs, CPU", reference, tuple(first))


def _ready(case: Case, nodes: int, seed: int) -> Timed:
    stage = Stage(Fleet(nodes, case.workload), level=case.level, policy=_POLICY, seed=seed)
    asyncio.run(warm_up(stage.cluster))
    return Timed(stage)


def _later(case: Case, large: Timed, little: Timed) -> Figure:
    return Figure(
        name=case.name,
        unit="ms",
        value=spread(large.wall),
        cpu=spread(large.cpu),
        reference=spread(little.wall),
    )


def _first(case: Case, large: Timed, little: Timed) -> Iterator[Figure]:
    for what, told in (("in all", sum), ("longest step", max)):
        yield Figure(
            name=f"{case.name}, {what}",
            unit="ms",
            value=1000 * told(large.steps),
            reference=1000 * told(little.steps),
        )
