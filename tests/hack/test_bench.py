"""The pure parts of hack/bench: figures, the cluster that is measured, the stage's bookkeeping."""

import json

import pytest

from driver.controller.commit import Allow
from driver.controller.warming import warm
from hack.benchmarks import knowing
from hack.benchmarks.figures import Figure, Section, Spread, document, quantile, spread, table
from hack.benchmarks.fleet import CARDS, MACHINES, Fleet
from hack.benchmarks.preparing import Way
from hack.benchmarks.process import cpu_ticks, rss
from hack.benchmarks.stage import Stage
from hack.benchmarks.workloads import SELECTED, WORKLOADS, Workload


@pytest.mark.parametrize(
    ("share", "found"), [(0.0, 1), (0.5, 50), (0.501, 51), (0.99, 99), (1.0, 100)]
)
def test_quantile(share: float, found: int) -> None:
    """The smallest value that so large a share of the values does not exceed."""
    assert quantile(range(1, 101), share) == found


def test_spread_is_in_milliseconds() -> None:
    """Durations come in seconds and in any order."""
    assert spread([0.3, 0.1, 0.2]) == Spread(count=3, p50=200.0, p99=300.0, longest=300.0)


def test_nothing_measured_is_an_error() -> None:
    """A figure without repetitions would be made up."""
    with pytest.raises(ValueError, match="nothing was measured"):
        spread([])


@pytest.mark.parametrize(
    ("value", "reference", "ratio"),
    [
        (6.0, 3.0, 2.0),
        (spread([0.004]), spread([0.001, 0.001, 0.9]), 4.0),
        (6.0, None, None),
        (6.0, 0.0, None),
    ],
)
def test_ratio(
    value: float | Spread, reference: float | Spread | None, ratio: float | None
) -> None:
    """Over the reference, at the medians; nothing over nothing."""
    assert Figure(name="n", unit="ms", value=value, reference=reference).ratio == ratio


def test_reports() -> None:
    """The table leaves empty columns out; the document has everything, and the ratio."""
    figure = Figure(name="memory", unit="MiB", value=3.0, reference=2.0)
    section = Section("title", "something", (figure,))
    assert table(section).splitlines() == [
        "title",
        "(reference: something)",
        "          value  reference  ratio",
        "memory  3.0 MiB    2.0 MiB   1.50",
    ]
    told = json.loads(document([section], {"cpus": 2}))
    assert told["machine"] == {"cpus": 2}
    assert told["sections"][0]["figures"][0]["ratio"] == 1.5


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda one: one.name)
def test_levels(workload: Workload) -> None:
    """So much of what there is is in use, the same for the same seed, other for another."""
    fleet = Fleet(20, workload)
    places = [*fleet.places(), *fleet.others()]
    cards = {(place.node, card) for place in places for card in place.cards}
    assert len(places) == len(set(places))
    assert len(cards) == 20 * CARDS
    half = fleet.taken(0.5, 1)
    assert len(set(half)) == len(places) // 2
    assert half == fleet.taken(0.5, 1) != fleet.taken(0.5, 2)


def test_cards_that_suit() -> None:
    """The selector takes what the fleet says: all cards of some nodes, some, or none."""
    cluster = Stage(Fleet(len(MACHINES), SELECTED), level=0.0, policy="compact", seed=1).cluster
    taken = {
        name: tuple(
            (card,)
            for pool in cluster.inventory.pools(cluster.node(name))
            for card, _, _ in pool.selected((SELECTED.selector,))
        )
        for name in cluster.nodes
    }
    assert taken == {name: Fleet(len(MACHINES), SELECTED).spots(name) for name in cluster.nodes}
    assert [len(found) for found in taken.values()] == [8, 0, 0, 4]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda one: one.name)
@pytest.mark.parametrize("level", [0.0, 0.95])
def test_the_stage_stays_as_full_as_it_is(workload: Workload, level: float) -> None:
    """Every commit is allowed, lands and is followed by a release; what is in use stays."""
    stage = Stage(Fleet(12, workload), level=level, policy="compact", seed=1)
    assert warm(stage.cluster, 20)
    before = _in_use(stage)
    for policy in ("compact", "spread"):
        stage.follow(policy)
        for _ in range(20):
            question = stage.question()
            ruling = stage.answer(question)
            assert isinstance(ruling, Allow)
            assert ruling.explanation is not None
            assert ruling.explanation.policy == policy
            stage.land(question, ruling)
            assert _in_use(stage) == before
    assert stage.cluster.ledger.outstanding() == 0


def test_the_same_seed_gives_the_same_commits() -> None:
    """Two runs can be compared."""
    one, same, other = (
        Stage(Fleet(4), level=0.5, policy="spread", seed=seed) for seed in (7, 7, 8)
    )
    questions = [[_step(stage) for _ in range(10)] for stage in (one, same, other)]
    assert questions[0] == questions[1] != questions[2]


def test_knowing_a_cluster() -> None:
    """All of it stands beside reading it; each change is applied as often as asked for."""
    built, followed = knowing.measure(nodes=8, changes=3, seed=1)
    assert built.title == "ledger of 8 slices with 8 cards each, 32 claims"
    assert [one.name for one in built.figures] == [
        "read and entered, CPU",
        "ready to decide, CPU",
        "resident memory",
    ]
    # Which of the two took longer is the machine's, in so small a cluster.
    assert all(one.ratio is not None and one.ratio > 0 for one in built.figures)
    counts = [one.value.count for one in followed.figures if isinstance(one.value, Spread)]
    assert counts == [3, 3, 3]


def test_calls() -> None:
    """Every claim is asked for once, however many go into a call."""
    claims = list(range(7))
    calls = Way("three", together=3).calls(claims)  # type: ignore[arg-type]
    assert [list(call) for call in calls] == [[0, 1, 2], [3, 4, 5], [6]]


def test_resident_memory() -> None:
    """As /proc tells it, in KiB; a process that has ended has none."""
    assert rss("VmPeak:\t  4096 kB\nVmRSS:\t  2048 kB\n") == 2.0
    with pytest.raises(ValueError, match="ended"):
        rss("Name:\tpython\n")


def test_cpu_time() -> None:
    """User and system time are the 14th and 15th field of a line with a name of any kind."""
    fields = " ".join(str(number) for number in range(4, 30))
    assert cpu_ticks(f"1 (a) b (c) S {fields}") == 14 + 15


def _in_use(stage: Stage) -> int:
    """Whole cards and shares."""
    return sum(len(use.shares) or 1 for use in stage.cluster.ledger.use().values())


def _step(stage: Stage) -> bytes:
    question = stage.question()
    stage.land(question, stage.answer(question))
    return question.review
