"""Which requests are usual: counted from claims that have devices, anew now and then."""

from typing import Any

from driver.controller.demand import Demand
from driver.controller.planner import Planner
from driver.controller.scoring import Scoring
from driver.model.ids import ClaimUid
from driver.model.names import MEMORY
from driver.model.resourceclaim import ResourceClaim
from driver.policy.mix import UNKNOWN
from driver.policy.registry import BUILT_IN
from driver.wire.decode import convert
from tests.controller.commits import DRIVER, claim, picked, proposed, request
from tests.controller.placements import add_claim, modes, pod, two_by_two

MEBI = 2**20 * 10**9


def _held(name: str, *results: dict[str, Any]) -> ResourceClaim:
    return convert(ResourceClaim, proposed(claim(name, request()), *results))


def _share(name: str) -> ResourceClaim:
    return _held(name, picked("gpu-0", mebi=500))


def _pair(name: str) -> ResourceClaim:
    return _held(name, picked("gpu-0"), picked("gpu-1"))


def test_nothing_is_known_at_first() -> None:
    """A few claims say nothing yet, and free ones never do."""
    demand = Demand(DRIVER)
    for number in range(40):
        demand.observe(convert(ResourceClaim, claim(f"free-{number}", request())))
    demand.observe(_share("one"))
    assert demand.mix is UNKNOWN
    assert demand.version == 0


def test_shapes_are_counted_by_what_was_given() -> None:
    """The commonest first: how many devices, how much of each."""
    demand = Demand(DRIVER)
    for number in range(12):
        demand.observe(_share(f"share-{number}"))
    for number in range(4):
        demand.observe(_pair(f"pair-{number}"))
    assert demand.version == 1
    found = [(one.weight, one.count, dict(one.amounts)) for one in demand.mix.shapes]
    assert found == [(12, 1, {MEMORY: 500 * MEBI}), (4, 2, {})]


def test_the_same_again_changes_nothing() -> None:
    """Watches tell the same more than once; devices of others are not our business."""
    demand = Demand(DRIVER)
    for _ in range(40):
        demand.observe(_share("one"))
        demand.observe(_held("nic", picked("nic-0", driver="nic.example.com")))
    assert demand.version == 0


def test_more_of_the_same_changes_nothing() -> None:
    """The mix is what parts of all requests are like; growth alone asks nobody again."""
    demand = Demand(DRIVER)
    for number in range(1000):
        demand.observe(_share(f"share-{number}") if number % 2 else _pair(f"pair-{number}"))
    assert demand.version == 1


def test_what_changes_slowly_is_noticed() -> None:
    """Each time the mix differs little from the last one, and more and more from that in use."""
    demand = Demand(DRIVER)
    for number in range(400):
        demand.observe(_share(f"share-{number}"))
    assert demand.version == 1
    for number in range(400):
        demand.observe(_pair(f"pair-{number}"))
    weights = [one.weight for one in demand.mix.shapes]
    assert weights[1] / sum(weights) > 0.3


def test_what_is_gone_is_not_usual() -> None:
    """Claims that leave are no longer counted; when all have left, nothing is known again."""
    demand = Demand(DRIVER)
    for number in range(16):
        demand.observe(_share(f"share-{number}"))
    for number in range(16):
        demand.forget(ClaimUid(f"uid-share-{number}"))
    assert demand.version == 2
    assert demand.mix is UNKNOWN


def test_a_policy_serves_until_the_mix_changes() -> None:
    """What it remembers holds for one mix only."""
    demand = Demand(DRIVER)
    scoring = Scoring(BUILT_IN, demand)
    first = scoring.objective("fragmentation", None)
    assert scoring.objective("fragmentation", None) is first
    for number in range(16):
        demand.observe(_pair(f"pair-{number}"))
    assert scoring.objective("fragmentation", None) is not first


def test_only_policies_that_go_by_the_mix_ask_again() -> None:
    """A new mix makes the nodes' answers old for them, and for nobody else."""
    demand = Demand(DRIVER)
    scoring = Scoring(BUILT_IN, demand)
    for number in range(16):
        demand.observe(_pair(f"pair-{number}"))
    assert scoring.version("compact", "binpack,topology", "none") == 0
    assert scoring.version("compact", "compact,fragmentation") == 1


def test_plans_follow_the_mix() -> None:
    """With pairs as the usual request, a new question is asked of the nodes."""
    at = two_by_two()
    add_claim(at, "c", request(), annotations=modes("fragmentation", "fragmentation"))
    at.put_pod(pod("p", "c"))
    planner = Planner(at)
    before = planner.question(at.pods["p"])
    for number in range(16):
        at.demand.observe(_pair(f"pair-{number}"))
    assert before is not None
    assert planner.question(at.pods["p"]) != before
    assert planner.plan(at.pods["p"]).node is not None
