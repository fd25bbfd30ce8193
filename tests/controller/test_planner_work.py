"""How little work a decision is, counted: looks at nodes, searches, their steps, CEL."""

import pytest

from driver.allocator import device
from driver.controller.planner import Planner
from driver.selector.judge import Judge, judge_of
from driver.wire.decode import convert
from tests.controller.commits import Json, request
from tests.controller.placements import add_claim, fleet, modes, place, pod, schedule


def test_equal_nodes_are_evaluated_once() -> None:
    """500 nodes in one state take one evaluation, whatever their cards are called."""
    at = fleet(500)
    planner = Planner(at)
    add_claim(at, "c0", request())
    asked = pod("p", "c0")
    assert planner.plan(asked).node == "node-0000"
    verdicts = planner.verdicts(asked)
    assert verdicts is not None
    assert (verdicts.evaluations, verdicts.looks) == (1, 500)


def test_a_decision_looks_only_at_nodes_that_changed() -> None:
    """Each replica looks again at the node that the one before it got, and at no other."""
    at = fleet(500)
    planner = Planner(at)
    for number in range(20):
        add_claim(at, f"c{number}", request())
        plan = place(planner, pod(f"p{number}", f"c{number}"))
        assert plan.node == f"node-{number // 8:04}"
    add_claim(at, "next", request())
    verdicts = planner.verdicts(pod("p", "next"))
    assert verdicts is not None
    # One look for each earlier decision; a node has nine states, and one of them is full.
    assert verdicts.looks == 500 + 19
    assert verdicts.evaluations <= 9


NEAR = {"constraints": [{"matchAttribute": "gpu.quadrant.dev/nvlinkGroup"}]}
READS_INDEX = "device.attributes['gpu.quadrant.dev'].index >= 0"
CEL: Json = {"selectors": [{"cel": {"expression": READS_INDEX}}]}


def work(count: int, asked: Json, rest: Json, policy: str) -> list[tuple[int, ...]]:
    """What each of ten replicas takes: looks, searches, their steps, how often CEL is evaluated."""
    at = fleet(count)
    planner, judge = Planner(at), Judge(READS_INDEX)
    seen: tuple[int, ...] = (0, 0, 0, 0)
    took: list[tuple[int, ...]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            device, "judge_of", lambda text: judge if text == READS_INDEX else judge_of(text)
        )
        for number in range(10):
            add_claim(at, f"c{number}", asked, **rest)
            of = pod(f"p{number}", f"c{number}", annotations=modes(policy, policy))
            verdicts = planner.verdicts(of)
            assert verdicts is not None
            assert place(planner, of).node is not None
            now = (verdicts.looks, verdicts.evaluations, verdicts.steps, judge.evaluations)
            took.append(tuple(new - old for new, old in zip(now, seen, strict=True)))
            seen = now
    return took


@pytest.mark.parametrize("policy", ["compact", "spread", "topology"])
@pytest.mark.parametrize(
    ("asked", "rest"),
    [
        pytest.param(request(), {}, id="whole"),
        pytest.param(request(count=4), NEAR, id="4 of 8 that are linked"),
        pytest.param(request(**CEL), {}, id="selector"),
    ],
)
def test_the_work_of_a_decision_does_not_grow_with_equal_nodes(
    asked: Json, rest: Json, policy: str
) -> None:
    """Ten times as many nodes: only the first decision takes more, and only in looks."""
    few, many = (work(count, asked, rest, policy) for count in (20, 200))
    assert (few[0][0], many[0][0]) == (20, 200)
    assert [one[1:] for one in few] == [one[1:] for one in many]
    # A replica looks at the node that the one before it got; the selector is done with by then.
    assert {one[0] for one in many[1:]} == {1}
    assert sum(one[3] for one in many) <= 8
    assert max(one[2] for one in many) <= 60


def test_commits_bring_only_their_nodes_back() -> None:
    """A promise that becomes a commitment of the same devices is one more look."""
    at = fleet(50)
    planner = Planner(at)
    for number in range(3):
        add_claim(at, f"c{number}", request())
    place(planner, pod("p0", "c0"))
    verdicts = planner.verdicts(pod("p1", "c1"))
    assert verdicts is not None
    planner.plan(pod("p1", "c1"))
    looks = verdicts.looks
    schedule(at, "c0", "node-0000", version=20)
    planner.plan(pod("p1", "c1"))
    planner.plan(pod("p2", "c2"))
    assert verdicts.looks == looks + 1


def test_a_change_that_may_count_everywhere_asks_all_nodes_again() -> None:
    """A class decides which devices are candidates."""
    at = fleet(10)
    planner = Planner(at)
    add_claim(at, "c0", request())
    asked = pod("p", "c0")
    planner.plan(asked)
    (known,) = at.classes.values()
    expression = "device.attributes['gpu.quadrant.dev'].serial >= 72"
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    document = {"metadata": {"name": known.metadata.name}, "spec": spec}
    at.put_class(convert(type(known), document))
    assert planner.plan(asked).node == "node-0009"


def test_a_node_that_is_gone_is_never_chosen() -> None:
    """Its slices may outlive it for a while."""
    at = fleet(3)
    planner = Planner(at)
    add_claim(at, "c0", request())
    asked = pod("p", "c0")
    assert planner.plan(asked).node == "node-0000"
    at.remove_node("node-0000")
    assert planner.plan(asked).node == "node-0001"


def test_work_can_be_done_ahead_in_steps() -> None:
    """What is left after each step is less; a plan then has nothing more to ask."""
    at = fleet(25)
    planner = Planner(at)
    add_claim(at, "c0", request())
    asked = pod("p", "c0")
    # The first node takes a search, which is a step of its own, each of the others only a look.
    assert [planner.prepare(asked, 10) for _ in range(4)] == [False, False, False, True]
    verdicts = planner.verdicts(asked)
    assert verdicts is not None
    planner.plan(asked)
    assert verdicts.looks == 25
