"""What decides about scores gets to where they are made: weights, and scorers of others."""

import pytest

from driver.controller.cluster import Cluster
from driver.controller.commit import Allow
from driver.controller.planner import Planner
from driver.controller.scoring import Scoring
from driver.model import names
from driver.model.allocation import Score, Term
from driver.policy.registry import Registry
from driver.policy.view import Choice, NodeView
from tests.controller.commits import claim, cluster, commit, gpu, picked, request
from tests.controller.placements import add_claim, modes, place, pod, schedule, two_by_two

TWO = [gpu(index, mebi=1000) for index in range(2)]


def two_shares_or_one() -> Cluster:
    """One card with a large share in use, one with three small ones."""
    at = cluster("compact", a=TWO)
    commit(at, claim("large", request(mebi=500)), picked("gpu-0", mebi=500))
    spread = {names.GPU_POLICY: "spread"}
    for name in ("s1", "s2", "s3"):
        free = claim(name, request(mebi=100), annotations=spread)
        commit(at, free, picked("gpu-1", mebi=100))
    return at


@pytest.mark.parametrize(
    ("weights", "device"),
    [("", "gpu-0"), ("slot=1,memory=0", "gpu-1"), ("slot=1,memory=9", "gpu-0")],
)
@pytest.mark.parametrize("name", [names.SCORING_WEIGHTS, names.HAMI_SCORING_WEIGHTS])
def test_weights_decide_at_the_commit(weights: str, device: str, name: str) -> None:
    """By memory the first card is the fuller, by shares the second."""
    at = two_shares_or_one()
    free = claim("c", request(mebi=100), annotations={name: weights})
    ruling = commit(at, free, picked("gpu-0", mebi=100))
    assert isinstance(ruling, Allow)
    assert [result.device for result in ruling.results] == [device]


def test_weights_decide_in_a_plan() -> None:
    """Pods that differ in weights ask different questions."""
    at = two_shares_or_one()
    planner = Planner(at)
    chosen = []
    for weights in ("", "slot=1,memory=0"):
        add_claim(at, "c", request(mebi=100), annotations={names.SCORING_WEIGHTS: weights})
        plan = planner.plan(pod("p", "c"))
        chosen += [one.device for a in plan.allocations.values() for one in a.devices.results]
    assert chosen == ["gpu-0", "gpu-1"]


class Emptiest:
    """Likes devices with little in use; fails where it is told to."""

    fails = False

    def score(self, view: NodeView, choice: Choice) -> Score:
        """Minus the shares on the chosen devices."""
        if self.fails:
            raise ZeroDivisionError
        shares = sum(view.devices[taken.index].shares for taken in choice.taken)
        return Score((Term("shares", -float(shares)),))


def with_policy_of_others(scorer: Emptiest) -> Cluster:
    """The two by two with one card in use, and a pod that a policy of others is to place."""
    at = two_by_two()
    at.registry = Registry({"emptiest": lambda _: scorer})
    at.scoring = Scoring(at.registry, at.demand)
    add_claim(at, "first", request(mebi=7500))
    schedule(at, "first", "t4", version=20)
    policies = modes("compact", "emptiest")
    add_claim(at, "c", request(mebi=7500), annotations=policies)
    at.put_pod(pod("p", "c"))
    return at


def test_a_scorer_of_others_decides_on_both_axes() -> None:
    """The plan and the commit agree."""
    at = with_policy_of_others(Emptiest())
    plan = place(Planner(at), at.pods["p"])
    assert plan.node == "t4"
    assert plan.devices.policy == "emptiest"
    ruling = schedule(at, "c", plan.node, version=30)
    assert [result.device for result in ruling.results] == ["gpu-1"]


def test_a_scorer_that_fails_leaves_it_to_the_scheduler() -> None:
    """No claim waits for a scorer to be mended."""
    scorer = Emptiest()
    scorer.fails = True
    at = with_policy_of_others(scorer)
    plan = Planner(at).plan(at.pods["p"])
    assert plan.node is None
    assert "ZeroDivisionError" in plan.rejections[0].reason
    ruling = schedule(at, "c", "t4", version=30)
    assert ruling.patch == []
