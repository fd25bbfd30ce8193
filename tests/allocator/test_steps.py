"""How much a decision does on the clusters of `hack/bench`, in steps: times say too little of it.

A step is a device that the search tries; a judgement is a set of devices that a scorer is asked
about. The bounds are what is needed today; who raises one makes every commit dearer.
"""

import gc
from collections.abc import Iterator
from itertools import product

import pytest

from driver.allocator.allocate import allocate
from driver.allocator.outcome import Allocated
from driver.allocator.problem import Problem
from driver.controller.commit import Allow
from driver.model.allocation import Score
from driver.model.resourceclaim import ResourceClaim
from driver.policy.policy import Policy
from driver.policy.registry import objective
from driver.policy.view import Choice, NodeView, Scorer
from driver.wire.decode import convert
from hack.benchmarks.fleet import Fleet
from hack.benchmarks.stage import Stage
from hack.benchmarks.workloads import FOUR, SELECTED, SHARE, WHOLE, Workload

LEVELS = (0.0, 0.5, 0.95)
SIZES = (8, 40)
POLICIES = ("compact", "spread", "topology", "fragmentation")
# Steps and judgements of one decision at the most. First fit may have to try all eight cards, and
# then each kind of card is tried once: four in a node of pairs, two in one of two halves, and eight
# where each has other shares on it. Four of eight are these or those.
BOUNDS = {WHOLE: (12, 4), SHARE: (16, 8), FOUR: (28, 2), SELECTED: (10, 2)}


class Counting:
    """A scorer that counts how often it is asked."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self.judgements = 0

    def score(self, view: NodeView, choice: Choice) -> Score:
        """What the other one says."""
        self.judgements += 1
        return self._scorer.score(view, choice)


def effort(stage: Stage, policy: str) -> Iterator[tuple[int, int]]:
    """Steps and judgements of the decision on each node where the claim fits."""
    made = objective(policy)
    assert made is not None
    cluster, workload = stage.cluster, stage.fleet.workload
    claim = convert(ResourceClaim, workload.claim("asked", 1))
    for node in cluster.nodes.values():
        counting = Counting(made.scorers[0])
        outcome = allocate(
            Problem(
                node=node,
                claims=(claim,),
                classes=cluster.classes,
                pools=cluster.inventory.pools(node),
                usage=cluster.ledger.use(),
                features=cluster.features,
                driver=cluster.driver,
            ),
            objective=Policy(policy, (counting,)),
        )
        if isinstance(outcome, Allocated):
            assert not outcome.truncated
            yield outcome.steps, counting.judgements


def stage(size: int, workload: Workload, level: float) -> Stage:
    """A cluster of the benchmark."""
    return Stage(Fleet(size, workload), level=level, policy="compact", seed=1)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("workload", BOUNDS, ids=lambda one: one.name)
def test_a_decision_takes_few_steps(workload: Workload, level: float) -> None:
    """At most so many, with a bound that knows neither the cluster's size nor its fullness."""
    steps, judgements = BOUNDS[workload]
    stages = [stage(size, workload, level) for size in SIZES]
    for made, policy in product(stages, POLICIES):
        efforts = list(effort(made, policy))
        assert efforts
        assert max(efforts)[0] <= steps
        assert max(judged for _, judged in efforts) <= judgements


@pytest.mark.parametrize("workload", BOUNDS, ids=lambda one: one.name)
def test_more_nodes_are_no_more_steps(workload: Workload) -> None:
    """The same node costs the same decision the same, whatever stands beside it."""
    few, many = (list(effort(stage(size, workload, 0.0), "compact")) for size in SIZES)
    assert many == few * (len(many) // len(few))


@pytest.mark.parametrize("workload", BOUNDS, ids=lambda one: one.name)
def test_a_decision_leaves_nothing_to_the_garbage_collector(workload: Workload) -> None:
    """What refers to itself in a circle would pile up until a decision has to wait for it."""
    made = stage(8, workload, 0.5)
    made.land(question := made.question(), made.answer(question))
    question = made.question()
    gc.collect()
    gc.disable()
    try:
        ruling = made.answer(question)
        assert gc.collect() == 0
    finally:
        gc.enable()
    assert isinstance(ruling, Allow)
