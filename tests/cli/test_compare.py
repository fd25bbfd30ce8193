"""Policies side by side: numbers, pictures, bounds for CI."""

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from driver.cli.pairs import pair
from driver.cli.render.comparison import ROWS
from driver.cli.simulation.bounds import BoundError, bound, check
from driver.cli.simulation.metrics import BOUNDED, bounded, measure
from driver.cli.simulation.report import CardUse, Comparison, Metrics, PendingPod
from driver.cli.usage import UsageError
from driver.policy.registry import BUILT_IN
from tests.cli.conftest import ROOT, TWO_BY_TWO, Quadrant

INVENTORY = TWO_BY_TWO / "inventory.yaml"
CLASS = ROOT / "deviceclasses" / "gpu.yaml"
BURST = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: burst}
spec:
  replicas: 4
  template:
    metadata: {annotations: ANNOTATIONS}
    spec:
      containers:
        - {name: main, resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: MEMORY}}}
"""
BOTH = ("--policy", "compact/compact", "--policy", "spread/spread")


def burst(annotations: str = "{}", memory: int = 7500) -> str:
    """Four shares."""
    return BURST.replace("ANNOTATIONS", annotations).replace("MEMORY", str(memory))


def card(
    node: str = "a", *, group: str = "", used: int = 0, shares: int = 0, exclusive: bool = False
) -> CardUse:
    """A card of 1000 MiB."""
    return CardUse(
        node=node,
        device="gpu",
        index=0,
        uuid="",
        product="",
        nvlink_group=group,
        memory_mib=1000,
        memory_used_mib=used,
        cores_used=0,
        shares=shares,
        parts=0,
        exclusive=exclusive,
    )


def test_side_by_side(quadrant: Quadrant, file: Callable[[str], Path]) -> None:
    """The state before, then a column for each policy, with the same nodes in each row."""
    result = quadrant("simulate", "-f", INVENTORY, "-f", CLASS, "-f", file(burst()), *BOTH)
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["METRIC", "compact/compact", "spread/spread"]
    assert next(line for line in lines if line.startswith("cardsUsed")).split()[1:3] == ["2", "4"]
    picture = lines[lines.index("") + 1 :]
    assert picture[0].split() == ["NODE", "BEFORE", "compact/compact", "spread/spread"]
    assert picture[1] == "t4     ·· ·· ·· ··   ▒2 ▒2 ·· ··       ▒1 ▒1 ·· ··"
    assert picture[-1].startswith("·· free")
    assert all(line == line.rstrip() for line in lines)


def test_the_json_has_each_simulation(quadrant: Quadrant, file: Callable[[str], Path]) -> None:
    """Each is the same object as of one policy alone."""
    files = ("-f", INVENTORY, "-f", CLASS, "-f", file(burst()))
    found = quadrant("simulate", *files, *BOTH, "-o", "json").stdout
    document = json.loads(found)
    assert (document["apiVersion"], document["kind"]) == ("quadrant.dev/v1alpha1", "Comparison")
    both = msgspec.json.decode(found, type=Comparison).simulations
    assert [report.policy for report in both] == ["compact/compact", "spread/spread"]
    alone = quadrant("simulate", *files, "--policy", "spread/spread", "-o", "json").stdout
    assert json.loads(alone) == document["simulations"][1]


def test_what_a_pod_says_itself_goes_first(quadrant: Quadrant, file: Callable[[str], Path]) -> None:
    """The comparison says that it compared nothing there."""
    said = burst("{quadrant.dev/node-policy: spread, quadrant.dev/gpu-policy: spread}")
    result = quadrant("simulate", "-f", INVENTORY, "-f", CLASS, "-f", file(said), *BOTH)
    assert "compact/compact: 4 pods were placed by other policies" in result.stderr
    assert "spread/spread: 4" not in result.stderr


def test_pods_that_wait_are_told_for_each_policy(
    quadrant: Quadrant, file: Callable[[str], Path]
) -> None:
    """Under the policy under which they wait."""
    manifest = file(burst(memory=30000))
    shown = quadrant("simulate", "-f", INVENTORY, "-f", CLASS, "-f", manifest, *BOTH).stdout
    assert "compact/compact: PENDING (4 of 4 pods)" in shown
    assert "spread/spread: PENDING (4 of 4 pods)" in shown


def test_a_bound_that_is_missed_ends_with_an_error(
    quadrant: Quadrant, file: Callable[[str], Path]
) -> None:
    """The report is printed all the same; one that is reached says nothing."""
    files = ("-f", INVENTORY, "-f", CLASS, "-f", file(burst()))
    assert quadrant("simulate", *files, *BOTH, "--fail-below", "cardsFree=4").exit_code == 0
    with pytest.raises(BoundError) as raised:
        quadrant("simulate", *files, *BOTH, "--fail-below", "cardsFree=5")
    assert str(raised.value) == "cardsFree is 4 with spread/spread, below 5"


def test_one_name_is_for_both_axes() -> None:
    """As for traces."""
    assert pair("spread", BUILT_IN) == pair("spread/spread", BUILT_IN)


@pytest.mark.parametrize("text", ["compact/", "/spread", "/", ""])
def test_a_pair_needs_both_axes(quadrant: Quadrant, text: str) -> None:
    """The sentence shows one."""
    with pytest.raises(UsageError, match="expected NODE/GPU, such as compact/spread"):
        quadrant("simulate", "-f", INVENTORY, "--policy", text)
    with pytest.raises(UsageError, match="--policy: GPU policy 'tight' is not known"):
        quadrant("simulate", "-f", INVENTORY, "--policy", "compact/tight")


@pytest.mark.parametrize("text", ["placed", "placed=x", "placed=nan", "fragmentation=1", "=1"])
def test_a_bound_that_means_nothing(text: str) -> None:
    """Of fragmentation less is better: a bound from below would be a mistake."""
    with pytest.raises(BoundError, match="expected METRIC=VALUE"):
        bound(text, BOUNDED)


def test_numbers() -> None:
    """Used and free cards and nodes, the largest free group, and what lies on cards in use."""
    cards = [
        card("a", group="x"),
        card("a", group="x"),
        card("a", group="y"),
        card("a", group="y", used=250, shares=1),
        card("b", exclusive=True),
        card("c"),
    ]
    waits = PendingPod(namespace="n", pod="p", refused=False, reason="full")
    refused = PendingPod(namespace="n", pod="q", refused=True, reason="wrong")
    found = measure([], [waits, waits, refused], cards)
    assert (found.placed, found.pending, found.placed_percent) == (0, 3, 0.0)
    assert found.pending_by_reason == {"full": 2, "refused: wrong": 1}
    assert (found.cards_used, found.cards_free) == (2, 4)
    assert (found.nodes_used, found.nodes_free) == (2, 1)
    assert found.largest_free_group == 2
    assert found.fragmentation == pytest.approx(100 * 750 / 4750, abs=0.01)
    assert found.fragmentation + found.whole_free_percent == pytest.approx(100)


def test_nothing_left_is_not_fragmented() -> None:
    """A full cluster, and one without cards or pods."""
    for cards in ([card(exclusive=True)], []):
        found = measure([], [], cards)
        assert (found.fragmentation, found.placed_percent) == (0.0, 100.0)
        check([bound("wholeFreePercent=100", BOUNDED)], [("p", bounded(found))])


def test_names_on_the_screen_and_of_bounds_are_those_of_the_json() -> None:
    """What is read in one place can be used in the other."""
    known = {field.encode_name for field in msgspec.structs.fields(Metrics)}
    assert {name for name, _, _ in ROWS} <= known
    assert set(BOUNDED) <= known
