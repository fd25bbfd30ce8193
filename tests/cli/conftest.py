"""Files and runs for the tests of the command line."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from driver.cli.main import app

ROOT = Path(__file__).resolve().parents[2]
TWO_BY_TWO = ROOT / "examples" / "two-by-two"

Quadrant = Callable[..., Result]


@pytest.fixture
def quadrant() -> Quadrant:
    """Run the program with arguments; what it raises is raised here."""

    def run(*arguments: str | Path, stdin: str | None = None) -> Result:
        texts = [str(argument) for argument in arguments]
        return CliRunner().invoke(app, texts, input=stdin, catch_exceptions=False)

    return run


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], Path]:
    """Write a manifest."""

    def write(text: str) -> Path:
        path = tmp_path / "manifest.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write
