"""How a choice is told in one line."""

from driver.controller.planner import NodeRejection, NodeScore, Plan
from driver.controller.policies import Setting, Source
from driver.controller.sentence import NOTHING_HELPS, node_told, nowhere_told, told
from driver.model.allocation import Explanation, Rejection, RejectionKind, RunnerUp, Score, Term
from driver.model.ids import DeviceId

A, B, C = (DeviceId("d", "n", f"gpu-{index}") for index in range(3))


def test_devices() -> None:
    """Devices, policy, score with its terms, the next best, and what was out of the question."""
    explanation = Explanation(
        policy="compact",
        score=Score((Term("fullness", 50.0), Term("groups split", -0.1), Term("nothing", 0.0))),
        runners_up=(RunnerUp((C,), Score((Term("fullness", 49.9),))),),
        rejections=(
            Rejection("in use", RejectionKind.IN_USE, 2),
            Rejection("tainted", RejectionKind.TAINT, 1),
        ),
    )
    assert told([A, B, A], explanation) == (
        "n/gpu-0, n/gpu-1 by compact, score 49.9 (fullness 50, groups split -0.1); "
        "next n/gpu-2, equal, later in order; "
        "2 devices no candidate: in use; 1 device no candidate: tainted"
    )


def test_a_tie_names_the_policy_that_broke_it() -> None:
    """Of several policies, the first that tells the two apart is the one to speak of."""
    explanation = Explanation(
        policy="compact,topology",
        score=Score((Term("fullness", 100.0),), then=(Score((Term("closeness", 100.0),)),)),
        runners_up=(RunnerUp((C,), Score((Term("fullness", 100.0),), then=(Score(),))),),
    )
    assert told([A, B], explanation).endswith(
        "next n/gpu-2, equal by compact, 100 behind by topology"
    )


def test_small_terms_are_not_rounded_away() -> None:
    """What decides a tie has to be seen."""
    explanation = Explanation(policy="p", score=Score((Term("a", 100.0), Term("b", -0.0004))))
    assert told([A], explanation) == "n/gpu-0 by p, score 99.9996 (a 100, b -0.0004)"


def test_the_smallest_distance_is_no_tie() -> None:
    """One free device more in the group is a millionth of a point: small, and yet the reason."""
    explanation = Explanation(
        policy="p",
        score=Score((Term("a", 100.0), Term("left", -0.000004))),
        runners_up=(RunnerUp((C,), Score((Term("a", 100.0), Term("left", -0.000005)))),),
    )
    assert told([A], explanation) == (
        "n/gpu-0 by p, score 100 (a 100, left -0.000004); next n/gpu-2, 0.000001 behind"
    )


def test_the_bound_of_the_search_is_told() -> None:
    """Who reads the Event has to know that not everything was looked at."""
    explanation = Explanation(policy="p", stopped_after=5000)
    assert told([A], explanation) == (
        "n/gpu-0 by p; the search stopped at its bound of 5000 steps: a better choice may exist"
    )


def test_where_nothing_helps_that_is_told() -> None:
    """Every sentence on a pod that fits nowhere says what would make it fit."""
    plan = Plan(
        why="no node fits",
        fits_nowhere=True,
        rejections=(NodeRejection("not selected", 2, "n1"),),
    )
    assert nowhere_told(plan) == (
        "no node fits, so that it is left to the scheduler: 2 nodes: not selected (such as n1); "
        f"what would help: {NOTHING_HELPS}"
    )


def test_first_fit_has_no_score() -> None:
    """Where nothing was scored, nothing is said of a score."""
    assert told([A], Explanation()) == "n/gpu-0 by first-fit"


def test_nodes() -> None:
    """Node, policy, score, the next best with its distance, and what kept others out."""
    plan = Plan(
        node="n1",
        policy=Setting("spread", Source.POD, "annotation"),
        score=Score((Term("free", 80.0),)),
        runners_up=(NodeScore("n2", Score((Term("free", 78.5),))),),
        rejections=(NodeRejection("the node is cordoned", 3, "n4"),),
    )
    assert node_told(plan) == (
        "node n1 by spread, score 80 (free 80); next n2, 1.5 behind; "
        "3 nodes out: the node is cordoned"
    )
