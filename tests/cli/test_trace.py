"""`quadrant simulate --trace`: files, options, report."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from driver.cli.simulation.recorded import TraceError, machines, tasks
from driver.cli.trace import TraceOptionError
from driver.model.errors import QuadrantError
from driver.policy.registry import PolicyError
from driver.simulator.trace.tasks import Ask, Machine
from tests.cli.conftest import Quadrant

NODES = """sn,cpu_milli,memory_mib,gpu,model
a,8000,8000,2,T4
b,8000,8000,2,A10
c,8000,8000,0,
"""
TASKS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time
one,1000,100,1,1000,,0,100
two,1000,100,1,500,T4|A10,50,60
none,1000,100,0,0,,0,5
"""
Files = Callable[..., tuple[str, str]]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Writes a trace and gives its two paths."""

    def write(nodes: str = NODES, tasks: str = TASKS) -> tuple[str, str]:
        paths = tmp_path / "nodes.csv", tmp_path / "tasks.csv"
        for path, text in zip(paths, (nodes, tasks), strict=True):
            path.write_text(text)
        return str(paths[0]), str(paths[1])

    return write


def test_a_trace_is_read(files: Files) -> None:
    """Everything in thousandths; models are a set; columns in any order, others ignored."""
    nodes, recorded = files()
    assert machines(nodes)[0] == Machine(cpu=8000, memory=8000, cards=2, model="T4")
    read = tasks(recorded, timed=True)
    assert read[1].ask == Ask(1000, 100, 1, 500, frozenset({"T4", "A10"}))
    assert [one.seconds for one in read] == [100, 10, 5]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("num_gpu", "gpus", "has no column num_gpu"),
        ("one,1000", "one,many", "line 2: cpu_milli is 'many'"),
        ("one,1000", "one,-1", "line 2: cpu_milli is '-1'"),
        ("1,500", "1,1500", "line 3: gpu_milli is 1500"),
        ("1,500", "1,0", "line 3: gpu_milli is 0"),
        ("50,60", "60,50", "line 3: deletion_time 50 is before"),
        ("50,60", "50", "line 3: deletion_time is None"),
    ],
)
def test_a_wrong_trace_is_told(files: Files, old: str, new: str, complaint: str) -> None:
    """With file, line and what was expected."""
    _, recorded = files(tasks=TASKS.replace(old, new))
    with pytest.raises(TraceError, match=complaint):
        tasks(recorded, timed=True)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    """As an error of ours."""
    with pytest.raises(TraceError, match="cannot be read"):
        machines(str(tmp_path / "none.csv"))


def _report(quadrant: Quadrant, *arguments: str) -> dict[str, Any]:
    result = quadrant("simulate", *arguments, "-o", "json")
    assert result.exit_code == 0, result.output
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def test_the_report_has_a_part_for_each_policy(files: Files, quadrant: Quadrant) -> None:
    """Four cards, tasks for 130 % of them."""
    policies = ("first-fit", "random", "compact/spread", "fragmentation")
    asked = [part for policy in policies for part in ("--policy", policy)]
    report = _report(quadrant, "--trace", *files(), *asked, "--seed", "7", "--departures")
    assert (report["kind"], report["seed"], report["cpuOnly"]) == ("TraceSimulation", 7, "policy")
    assert (report["nodes"], report["cards"]) == (3, 4)
    assert [played["policy"] for played in report["policies"]] == list(policies)
    for played in report["policies"]:
        # Tasks come in steps of a quarter of all cards and more: none is at 130 %.
        assert played["a130"] is None
        assert 0 <= played["failed"] < played["tasks"]
        assert played["departures"]["tasks"] == played["tasks"]


def test_the_same_seed_gives_the_same(files: Files, quadrant: Quadrant) -> None:
    """All but the time that decisions took."""

    def played() -> dict[str, Any]:
        (one,) = _report(quadrant, "--trace", *files(), "--policy", "random")["policies"]
        return {name: value for name, value in one.items() if not name.startswith("decision")}

    assert played() == played()


def test_the_table_says_who_places_what(files: Files, quadrant: Quadrant) -> None:
    """A figure means nothing without that."""
    result = quadrant("simulate", "--trace", *files(), "--policy", "compact", "--cpu-only", "stock")
    assert result.exit_code == 0
    assert "tasks without a card are placed by a stand-in of kube-scheduler" in result.stdout
    assert "a100" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), TraceOptionError),
        (("--policy", "unknown"), PolicyError),
        (("--policy", "compact", "--until", "0"), TraceOptionError),
        (("--policy", "compact", "--until", "nan"), TraceOptionError),
    ],
)
def test_wrong_options_are_told(
    files: Files, quadrant: Quadrant, arguments: tuple[str, ...], error: type[QuadrantError]
) -> None:
    """Before anything is played."""
    with pytest.raises(error):
        quadrant("simulate", "--trace", *files(), *arguments)


def test_nothing_can_be_measured_without_cards(files: Files, quadrant: Quadrant) -> None:
    """Percentages of nothing."""
    nodes, recorded = files(nodes=NODES.replace(",2,", ",0,"))
    with pytest.raises(TraceOptionError, match="no node"):
        quadrant("simulate", "--trace", nodes, recorded, "--policy", "compact")


def test_either_manifests_or_a_trace(files: Files, quadrant: Quadrant) -> None:
    """Not both, not none."""
    assert quadrant("simulate").exit_code == 2
    assert quadrant("simulate", "-f", "x", "--trace", *files()).exit_code == 2
