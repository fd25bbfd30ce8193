"""What `hack/bench plan` plays: pods that get nodes, claims that come and go."""

import pytest

from driver.controller.warming import warm
from hack.benchmarks.fleet import Fleet
from hack.benchmarks.planning import NOWHERE, Case, Timed, cases
from hack.benchmarks.stage import Stage

CASES = list(cases())


def ready(case: Case, nodes: int = 8) -> Timed:
    """A small cluster, its planner, and nothing decided yet."""
    stage = Stage(Fleet(nodes, case.workload), level=case.level, policy="compact", seed=1)
    assert warm(stage.cluster, nodes)
    return Timed(stage)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_cluster_stays_as_full_as_it_is(case: Case) -> None:
    """Every pod gets a node, and another goes; where nothing fits, nothing changes."""
    timed = ready(case)
    cluster = timed.stage.cluster
    before = in_use(timed)
    plans = [timed.first()]
    plans += [timed.decide() for _ in range(15)]
    assert in_use(timed) == before
    assert {plan.node is None for plan in plans} == {case.workload is NOWHERE}
    assert len(timed.wall) == len(timed.cpu) == len(plans) - 1
    assert timed.steps
    assert not cluster.nominations.use()
    assert len(cluster.pods) <= len(cluster.claims)


def test_the_same_seed_gives_the_same_plans() -> None:
    """Two runs can be compared."""
    nodes = [
        [timed.decide().node for _ in range(10)] for timed in (ready(CASES[1]), ready(CASES[1]))
    ]
    assert nodes[0] == nodes[1]


def in_use(timed: Timed) -> int:
    """Whole cards and shares."""
    return sum(len(use.shares) or 1 for use in timed.stage.cluster.ledger.use().values())
