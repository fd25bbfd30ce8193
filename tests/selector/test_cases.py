"""The handed cases: what Kubernetes' own package makes of 1,855 expressions."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("QUADRANT_SHARED", ROOT.parent / "shared"))
CASES = SHARED / "cases" / "cel" / "cases.json"


@pytest.mark.skipif(not CASES.exists(), reason=f"no handed cases at {CASES} (QUADRANT_SHARED)")
def test_all_handed_cases_agree() -> None:
    """Every expression gives what cel-go gives: a value, or which kind of error."""
    done = subprocess.run(
        [ROOT / "hack" / "cel-cases", CASES],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1:] == ["1855 passed, 0 failed"], done.stdout + done.stderr
    assert done.returncode == 0


def test_a_difference_is_printed_and_fails(tmp_path: Path) -> None:
    """The runner names the case that differs and exits with 1."""
    file = tmp_path / "cases.json"
    file.write_text(
        '{"devices": {"d": {"driver": "x"}}, "cases": [{"name": "wrong", "device": "d", '
        '"expression": "1 == 1", "outcome": "runtime-error"}, {"name": "right", "device": "d", '
        '"expression": "1 == 2", "outcome": false}]}'
    )
    done = subprocess.run(
        [ROOT / "hack" / "cel-cases", file],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "wrong: expected runtime-error, got True" in done.stdout
    assert done.stdout.splitlines()[-1] == "1 passed, 1 failed"
    assert done.returncode == 1
