"""The two-by-two of policies comes out as it must, from the real manifests."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, TWO_BY_TWO, Quadrant

GOLDEN = Path(__file__).parent / "golden"
MODES = {
    "a-node-compact-gpu-compact": (1, 2, [4]),
    "b-node-spread-gpu-compact": (2, 2, [2, 2]),
    "c-node-compact-gpu-spread": (1, 4, [4]),
    "d-node-spread-gpu-spread": (2, 4, [2, 2]),
}


def _arguments(mode: str) -> list[str | Path]:
    files = (TWO_BY_TWO / name for name in ("deviceclass.yaml", "inventory.yaml", f"{mode}.yaml"))
    return ["simulate", *(part for file in files for part in ("-f", file))]


@pytest.mark.parametrize("mode", MODES)
def test_mode(quadrant: Quadrant, mode: str) -> None:
    """Number of nodes, number of GPUs, and how the pods are divided."""
    result = quadrant(*_arguments(mode), "-o", "json")
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert report["pending"] == []
    nodes = [placement["node"] for placement in report["placements"]]
    cards = {
        device["uuid"] for placement in report["placements"] for device in placement["devices"]
    }
    expected = MODES[mode]
    division = sorted(nodes.count(node) for node in set(nodes))
    assert (len(set(nodes)), len(cards), division) == expected


def test_nobody_gets_more_than_a_card_has(quadrant: Quadrant) -> None:
    """All four Deployments together fill cards, and overfill none."""
    result = quadrant("simulate", "-f", TWO_BY_TWO, "-o", "json")
    report = json.loads(result.stdout)
    assert len(report["placements"]) == 16
    used: dict[str, int] = {}
    for placement in report["placements"]:
        for device in placement["devices"]:
            used[device["uuid"]] = used.get(device["uuid"], 0) + device["memoryMiB"]
    for card in report["cards"]:
        assert used.get(card["uuid"], 0) == card["memoryUsedMiB"] <= card["memoryMiB"]


def test_same_input_same_output(quadrant: Quadrant) -> None:
    """Nothing in a simulation depends on chance or time."""
    first, second = (quadrant("simulate", "-f", TWO_BY_TWO, "-o", "json") for _ in range(2))
    assert first.stdout == second.stdout


def test_table_and_picture(quadrant: Quadrant) -> None:
    """What people see of mode B, to the letter."""
    shown = quadrant(*_arguments("b-node-spread-gpu-compact"), "--ascii").stdout
    lines = [line.rstrip() for line in shown.splitlines()]
    until = lines.index("WHY")
    golden = (GOLDEN / "two-by-two-b.txt").read_text("utf-8").splitlines()
    assert lines[:until] == golden


def test_every_pod_is_explained(quadrant: Quadrant) -> None:
    """One sentence on the node and one on the devices, with scores and runners-up."""
    report = json.loads(quadrant(*_arguments("b-node-spread-gpu-compact"), "-o", "json").stdout)
    last = report["placements"][-1]["why"]
    assert len(last) == 2
    assert last[0].startswith("node t4 by spread, score ")
    assert "; next a10g, " in last[0]
    assert last[1].startswith("t4/gpu-0 by binpack, score 97.66")


def test_the_examples_class_is_the_one_that_is_shipped() -> None:
    """One text in two places must not drift apart."""
    shipped = ROOT / "deviceclasses" / "gpu.yaml"
    assert (TWO_BY_TWO / "deviceclass.yaml").read_text("utf-8") == shipped.read_text("utf-8")
