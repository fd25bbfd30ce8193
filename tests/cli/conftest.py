"""Files and runs for the tests of the command line."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from driver.cli.main import app
from tests.cli.livecluster import LiveCluster, live_cluster

ROOT = Path(__file__).resolve().parents[2]
TWO_BY_TWO = ROOT / "examples" / "two-by-two"

Quadrant = Callable[..., Result]
MIXED = """
apiVersion: quadrant.dev/v1alpha1
kind: Inventory
nodes:
  - {name: t4, gpus: 2xT4}
  - {name: hopper, gpus: 8xH100-SXM}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve}
spec:
  replicas: 3
  template:
    spec:
      containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 7500}}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: train}
spec:
  replicas: 3
  template:
    spec:
      containers: [{name: main, resources: {limits: {nvidia.com/gpu: 4}}}]
"""


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


@pytest.fixture
def html(quadrant: Quadrant, file: Callable[[str], Path], tmp_path: Path) -> Path:
    """Two policies on cards that are free, shared and given whole, with a pod that waits."""
    device_class = ROOT / "examples" / "extended-resource" / "deviceclass.yaml"
    policies = ("--policy", "compact/compact", "--policy", "spread/spread")
    files = ("-f", file(MIXED), "-f", device_class)
    path = tmp_path / "page.html"
    path.write_text(quadrant("simulate", *files, *policies, "-o", "html").stdout, "utf-8")
    return path


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[LiveCluster]:
    """A cluster behind real HTTP."""
    async with live_cluster(tmp_path) as running:
        yield running
