"""How long one decision of the commit hook takes, in a cluster of a given size and fullness.

Measured is the controller's own part of what the API server waits for: a review is read, devices
are chosen, the answer is entered in the ledger. The reference is the same in a tenth of the nodes,
turn by turn: a decision must not depend on the size of the cluster.
"""

import asyncio
import gc
import time
from itertools import product

import msgspec

from driver.controller.warming import collect_seldom, warm_up
from hack.benchmarks.figures import Figure, Section, spread
from hack.benchmarks.fleet import FEWEST, Fleet
from hack.benchmarks.stage import Stage
from hack.benchmarks.workloads import WORKLOADS, Workload

LEVELS = (0.0, 0.5, 0.95)
POLICIES = ("compact", "spread")
_SMALLER = 10


class Case(msgspec.Struct, frozen=True):
    """What is asked for, under which policy, in how full a cluster."""

    workload: Workload
    level: float
    policy: str

    @property
    def name(self) -> str:
        """The case in words."""
        return f"{self.workload.name}, {self.policy}, {self.level:.0%} full"


class Timed:
    """A stage, and how long its decisions took; seconds."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def decide(self) -> None:
        """One decision is timed; what follows it is not."""
        question = self._stage.question()
        wall, cpu = time.perf_counter(), time.thread_time()
        ruling = self._stage.answer(question)
        self.cpu.append(time.thread_time() - cpu)
        self.wall.append(time.perf_counter() - wall)
        self._stage.land(question, ruling)


def measure(*, nodes: int, decisions: int, seed: int) -> Section:
    """So many decisions of every case."""
    small = max(FEWEST, nodes // _SMALLER)
    figures: list[Figure] = []
    for workload, level in product(WORKLOADS, LEVELS):
        large, little = (ready(Fleet(size, workload), level, seed) for size in (nodes, small))
        figures.extend(
            _measured(Case(workload, level, policy), large, little, decisions=decisions)
            for policy in POLICIES
        )
        gc.unfreeze()
    return Section(f"decision at {nodes} nodes x 8 GPUs", f"at {small} nodes", tuple(figures))


def ready(fleet: Fleet, level: float, seed: int, policy: str = POLICIES[0]) -> Stage:
    """A cluster as full as that, as ready as the controller makes its own before it serves."""
    collect_seldom()
    made = Stage(fleet, level=level, policy=policy, seed=seed)
    asyncio.run(warm_up(made.cluster))
    return made


def _measured(case: Case, large: Stage, small: Stage, *, decisions: int) -> Figure:
    timed = [Timed(large), Timed(small)]
    large.follow(case.policy)
    small.follow(case.policy)
    for _ in range(decisions):
        for one in timed:
            one.decide()
    return Figure(
        name=case.name,
        unit="ms",
        value=spread(timed[0].wall),
        cpu=spread(timed[0].cpu),
        reference=spread(timed[1].wall),
    )
