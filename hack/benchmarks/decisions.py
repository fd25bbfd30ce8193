"""How long one decision of the commit hook takes, in a cluster of a given size and fullness.

Measured is the controller's own part of what the API server waits for: a review is read, devices
are chosen, the answer is entered in the ledger. The reference is the same in a tenth of the nodes,
turn by turn: a decision must not depend on the size of the cluster.
"""

import asyncio
import gc
import time
from collections.abc import Iterator
from itertools import product

import msgspec

from driver.controller.warming import warm_up
from hack.benchmarks.figures import Figure, Section, spread
from hack.benchmarks.fleet import Fleet
from hack.benchmarks.stage import Stage

LEVELS = (0.0, 0.5, 0.95)
POLICIES = ("compact", "spread")
_SMALLER = 10


class Case(msgspec.Struct, frozen=True):
    """What is asked for, under which policy, in how full a cluster."""

    shared: bool
    policy: str
    level: float

    @property
    def name(self) -> str:
        """The case in words."""
        return f"{'share' if self.shared else 'whole'}, {self.policy}, {self.level:.0%} full"


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


def cases() -> Iterator[Case]:
    """All that is measured."""
    return (Case(*parts) for parts in product((False, True), POLICIES, LEVELS))


def measure(*, nodes: int, decisions: int, seed: int) -> Section:
    """So many decisions of every case."""
    figures = tuple(
        _measured(case, nodes=nodes, decisions=decisions, seed=seed) for case in cases()
    )
    small = max(1, nodes // _SMALLER)
    return Section(f"decision at {nodes} nodes x 8 GPUs", f"at {small} nodes", figures)


def stage(case: Case, nodes: int, seed: int) -> Stage:
    """The cluster of a case, as ready as the controller makes its own before it serves."""
    made = Stage(Fleet(nodes, case.shared), level=case.level, policy=case.policy, seed=seed)
    asyncio.run(warm_up(made.cluster))
    return made


def _measured(case: Case, *, nodes: int, decisions: int, seed: int) -> Figure:
    large = Timed(stage(case, nodes, seed))
    small = Timed(stage(case, max(1, nodes // _SMALLER), seed))
    for _ in range(decisions):
        large.decide()
        small.decide()
    gc.unfreeze()
    return Figure(
        name=case.name,
        unit="ms",
        value=spread(large.wall),
        cpu=spread(large.cpu),
        reference=spread(small.wall),
    )
