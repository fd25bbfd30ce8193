"""`quadrant simulate --trace`: files, options, report."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from driver.cli.simulation.bounds import BoundError
from driver.cli.simulation.recorded import TraceError, machines, tasks
from driver.cli.usage import UsageError
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
        ("50,60", "50", "line 3: deletion_time is missing"),
        ("50,60", "50,60,70", "line 3: 1 more values than the first line has names"),
        (TASKS.partition("\n")[2], "", "tasks.csv is empty"),
    ],
)
def test_a_wrong_trace_is_told(files: Files, old: str, new: str, complaint: str) -> None:
    """With file, line and what was expected."""
    _, recorded = files(tasks=TASKS.replace(old, new))
    with pytest.raises(TraceError, match=complaint):
        tasks(recorded, timed=True)


def test_a_node_must_name_its_model(files: Files) -> None:
    """A line that ends too early is no node without a model."""
    nodes, _ = files(nodes=NODES.replace("2,T4", "2"))
    with pytest.raises(TraceError, match=r"nodes\.csv, line 2: model is missing"):
        machines(nodes)


def test_what_spreadsheets_add_does_not_matter(files: Files) -> None:
    """A mark at the beginning of the file, spaces around values."""
    nodes, recorded = files("\ufeff" + NODES, TASKS.replace("T4|A10", "T4 | A10 "))
    assert machines(nodes)[0].model == "T4"
    assert tasks(recorded)[1].ask.models == {"T4", "A10"}


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
    assert all(line == line.rstrip() for line in result.stdout.splitlines())


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "--trace needs at least one --policy"),
        (("--policy", "unknown"), "--policy: node policy 'unknown' is not known"),
        (("--policy", "compact/"), "--policy: policy 'compact/' cannot be read"),
        (("--policy", "compact", "--until", "0"), "--until: 0.0 cannot be"),
        (("--policy", "compact", "--until", "nan"), "--until: nan cannot be"),
        (("--policy", "compact", "-o", "html"), "-o: 'html' is not known"),
        (("--policy", "compact", "--cpu-only", "me"), "--cpu-only: 'me' is not known"),
        (("--policy", "compact", "--ascii"), "--ascii says nothing with --trace"),
        (("--policy", "compact", "--kubernetes", "1.37"), "--kubernetes says nothing"),
        (("--policy", "compact", "--fail-below", "placed=1"), "--fail-below: bound 'placed=1'"),
        (("--policy", "compact", "--fail-below", "served=1"), "one of a95, a100, a130$"),
    ],
)
def test_wrong_options_are_told(
    files: Files, quadrant: Quadrant, arguments: tuple[str, ...], complaint: str
) -> None:
    """Before anything is played."""
    with pytest.raises(UsageError, match=complaint):
        quadrant("simulate", "--trace", *files(), *arguments)


def test_a_bound_holds_for_traces_too(files: Files, quadrant: Quadrant) -> None:
    """The report is printed, and what is below its bound ends with an error."""
    asked = ("simulate", "--trace", *files(), "--policy", "compact", "--departures")
    assert quadrant(*asked, "--fail-below", "served=1").exit_code == 0
    with pytest.raises(BoundError, match=r"served is [0-9.]+ with compact, below 101"):
        quadrant(*asked, "--fail-below", "served=101")
    with pytest.raises(BoundError, match="a130 was not measured with compact"):
        quadrant(*asked, "--fail-below", "a130=1")


def test_nothing_can_be_measured_without_cards(files: Files, quadrant: Quadrant) -> None:
    """Percentages of nothing."""
    nodes, recorded = files(nodes=NODES.replace(",2,", ",0,"))
    with pytest.raises(TraceError, match="no node"):
        quadrant("simulate", "--trace", nodes, recorded, "--policy", "compact")


def test_either_manifests_or_a_trace(files: Files, quadrant: Quadrant) -> None:
    """Not both, not none."""
    for asked in ((), ("-f", "x", "--trace", *files())):
        with pytest.raises(UsageError, match="either -f or --trace"):
            quadrant("simulate", *asked)
    with pytest.raises(UsageError, match="--seed says nothing with -f"):
        quadrant("simulate", "-f", "x", "--seed", "7")
