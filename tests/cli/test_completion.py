"""Completion for kubectl: commands, options, and names that only the cluster knows."""

import asyncio
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from driver.cli import completion
from tests.cli.livecluster import LiveCluster
from tests.controller.commits import gpu


def completed(*words: str) -> tuple[set[str], str]:
    """The candidates, and the directive."""
    code = "from driver.cli.completion import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )
    *candidates, directive = done.stdout.splitlines()
    return set(candidates), directive


def test_commands() -> None:
    """All of them, or those that begin so; no files."""
    found, directive = completed("")
    assert {"matrix", "claims", "topo", "doctor", "cordon", "migrate", "explain"} <= found
    assert directive == ":4"
    assert completed("ma") == ({"matrix"}, ":4")


def test_options_and_files() -> None:
    """After -f come files."""
    found, _ = completed("claims", "--s")
    assert found == {"--selector", "--sort-by"}
    assert completed("migrate", "-f", "")[1] == ":0"


async def test_names_of_the_cluster(live: LiveCluster) -> None:
    """Nodes for topo; for cordon first the node, then the card."""
    live.node("node-a", [gpu(0), gpu(1)])
    live.node("other", [gpu(0)])
    config = str(live.kubeconfig())

    async def asked(*words: str) -> set[str]:

        found, _ = await asyncio.to_thread(completed, *words)
        return found

    assert await asked("topo", "--kubeconfig", config, "no") == {"node-a"}
    assert await asked("cordon", "--kubeconfig", config, "") == {"node-a/", "other/"}
    assert await asked("cordon", "--kubeconfig", config, "node-a/") == {
        "node-a/gpu-0",
        "node-a/gpu-1",
    }


def test_no_cluster_no_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error has no place while somebody types."""
    assert list(completion.nodes("/nowhere", None, "")) == []


def test_kubectl_finds_it() -> None:
    """Under the name that kubectl looks for."""
    scripts = {one.name: one.value for one in entry_points(group="console_scripts")}
    if "kubectl_complete-quadrant" not in scripts:
        pytest.skip("installed before this script was there: pip install --editable .")
    assert scripts["kubectl_complete-quadrant"] == "driver.cli.completion:main"
