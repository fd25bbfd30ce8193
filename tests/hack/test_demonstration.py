"""The demonstration notices when a mode does not come out as it must."""

import subprocess
import sys
from pathlib import Path

import pytest

from hack.demonstration import simulated
from hack.demonstration.modes import MODES, Mode, Row
from hack.demonstration.show import differences

ROOT = Path(__file__).resolve().parents[2]
T4, A10G = "t4", "a10g"


def _rows(*places: tuple[str, int]) -> list[Row]:
    return [
        Row(f"pod-{number}", node, gpu, f"GPU-{node}-{gpu}")
        for number, (node, gpu) in enumerate(places)
    ]


RIGHT = {
    "A": _rows((T4, 0), (T4, 0), (T4, 1), (T4, 1)),
    "B": _rows((T4, 0), (T4, 0), (A10G, 0), (A10G, 0)),
    "C": _rows((T4, 0), (T4, 1), (T4, 2), (T4, 3)),
    "D": _rows((T4, 0), (T4, 1), (A10G, 0), (A10G, 1)),
}


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.letter)
def test_each_mode_accepts_its_own_outcome_only(mode: Mode) -> None:
    """What is right for one mode is wrong for every other."""
    verdicts = {letter: mode.check(rows) for letter, rows in RIGHT.items()}
    assert [letter for letter, problem in verdicts.items() if not problem] == [mode.letter]


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.letter)
def test_a_missing_pod_is_noticed(mode: Mode) -> None:
    """Three pods of four are not enough."""
    assert mode.check(RIGHT[mode.letter][:3]) == "3 of 4 pods run"


def test_three_to_one_is_not_two_to_two() -> None:
    """Mode B and D divide the pods evenly."""
    uneven = _rows((T4, 0), (T4, 0), (T4, 0), (A10G, 0))
    assert "expected 2 pods on each node" in MODES[1].check(uneven)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.letter)
def test_the_simulation_comes_out_as_it_must(mode: Mode) -> None:
    """With the manifests of examples/two-by-two."""
    assert mode.manifest.is_file()
    assert mode.check(simulated.rows(simulated.run(mode))) == ""


def test_differences_do_not_depend_on_names_or_order() -> None:
    """Only how many pods are on which card counts."""
    same = [row._replace(pod=f"other-{row.pod}") for row in reversed(RIGHT["D"])]
    assert differences(RIGHT["D"], same) == ""
    assert differences(RIGHT["A"], RIGHT["C"]) == (
        "1 pod(s) on t4 GPU 0, the simulation says 2; 1 pod(s) on t4 GPU 1, the simulation says 2; "
        "1 pod(s) on t4 GPU 2, the simulation says 0; 1 pod(s) on t4 GPU 3, the simulation says 0"
    )


def test_the_program_ends_with_status_0() -> None:
    """All four modes, their tables and their pictures."""
    done = subprocess.run(
        [sys.executable, "-m", "hack.demonstration", "--ascii"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("as it must be") == 4
