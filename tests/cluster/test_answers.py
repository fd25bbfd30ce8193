"""What `quadrant explain` and `quadrant snapshot` say of a real cluster."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster import workloads
from tests.cluster.site import ROOT, Site

pytestmark = pytest.mark.cluster

HALF = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 7500}
FIVE = {"nvidia.com/gpu": 5, "nvidia.com/gpumem": 100}


def quadrant(site: Site, *arguments: str) -> workloads.Object:
    """Run the program on the cluster; the JSON that it prints."""
    options = ("--kubeconfig", site.state["kubeconfig"])
    done = subprocess.run(
        [sys.executable, "-m", "driver.cli", *arguments, *options],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found: workloads.Object = json.loads(done.stdout)
    return found


def test_a_pod_that_runs_and_one_that_waits(site: Site) -> None:
    """Both axes with what they are made of, and the words of the time."""
    runs = workloads.pod("runs", workloads.container(limits=HALF))
    site.run(runs)
    told = quadrant(site, "explain", "pod/runs", "-o", "json")
    assert told["state"] == "allocated"
    assert told["node"]["chosen"]["names"] == [site.node_of("runs")]
    ((pool, device),) = site.devices_of("runs")
    assert told["devices"]["chosen"]["names"] == [f"{pool}/{device}"]

    def reasons() -> set[str]:
        again = quadrant(site, "explain", "pod/runs", "-o", "json")
        return {one["reason"] for one in again["recorded"]}

    site.wait("the events of the pod", lambda: {"NodeNominated", "DevicesChosen"} <= reasons())
    site.api.create("pods", workloads.pod("waits", workloads.container(limits=FIVE)))
    site.wait("the pod to be ungated", lambda: not site.pod("waits")["spec"].get("schedulingGates"))
    told = quadrant(site, "explain", "pod/waits", "-o", "json")
    assert told["state"] == "pending"
    assert told["node"]["chosen"] is None
    assert sum(one["count"] for one in told["node"]["rejected"]) == 2
    assert "even if nothing were in use" in told["wouldFit"][0]


def test_a_snapshot_starts_a_simulation(site: Site, tmp_path: Path) -> None:
    """The cards are as used as in the cluster, with and without names."""
    site.run(*(workloads.pod(f"p{n}", workloads.container(limits=HALF)) for n in range(3)))
    shares = []
    for options in ((), ("--redact",)):
        path = tmp_path / "cluster.json"
        path.write_text(json.dumps(quadrant(site, "snapshot", *options)), "utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "driver.cli", "simulate", "-f", str(path), "-o", "json"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        )
        report = json.loads(done.stdout)
        assert report["placements"] == report["pending"] == []
        shares.append([card["shares"] for card in report["cards"]])
    assert shares[0] == shares[1]
    assert sum(shares[0]) == 3
