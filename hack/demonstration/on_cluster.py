"""What comes out of a mode on a real cluster? Told by the containers themselves.

Brings a cluster up with Quadrant on it, applies the manifests with kubectl, and reads what each
container sees of its card. Takes all of it down at the end.
"""

import contextlib
import json
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace

from driver.cli.simulation.report import CardUse
from hack.deployment import Deployment

from .modes import REPLICAS, Mode, Row
from .show import Screen

ROOT = Path(__file__).resolve().parents[2]
NAME = "demo"
# What the node plugin writes into a container for each card, and for a share of one.
_CARD = re.compile(r"QUADRANT_DEVICE_\d+=index=(?P<index>\d+),uuid=(?P<uuid>[^,]+),model=.*")
_MEMORY = re.compile(r"CUDA_DEVICE_MEMORY_LIMIT_0=(?P<mib>\d+)m")
_RUN_WITHIN_S = 60.0


class ClusterDemoError(Exception):
    """The cluster, or a container in it, is not as it must be; the text says what."""


class Container:
    """What one container says of itself."""

    def __init__(self, row: Row, memory_mib: int) -> None:
        self.row = row
        self.memory_mib = memory_mib


@contextlib.contextmanager
def quadrant(screen: Screen) -> Iterator[Deployment]:
    """A cluster with Quadrant on it, gone at the end."""
    screen.say("\nbringing a real Kubernetes up (the first time it is built: about ten minutes)")
    _cluster("up")
    try:
        state = json.loads(_cluster("status", "-o", "json"))
        with tempfile.TemporaryDirectory(prefix="quadrant-demo-") as folder:
            deployment = Deployment(state, Path(folder))
            begin = time.monotonic()
            try:
                deployment.up()
                took = time.monotonic() - begin
                screen.say(f"Kubernetes {state['kubernetes']}; Quadrant works after {took:.1f} s")
                yield deployment
            finally:
                deployment.down()
    finally:
        _cluster("down")


@contextlib.contextmanager
def running(deployment: Deployment, mode: Mode) -> Iterator[list[Container]]:
    """The containers of this mode's Deployment, all of them running; all gone at the end."""
    deployment.apply(*_manifest(deployment, mode))
    selector = f"app={mode.deployment}"

    def pods() -> list[dict[str, Any]]:
        found = deployment.get("pods", "-l", selector)
        return [pod for pod in found if pod["status"].get("phase") == "Running"]

    deployment.wait(
        f"{REPLICAS} running pods of {mode.deployment}",
        lambda: len(pods()) == REPLICAS,
        within=_RUN_WITHIN_S,
    )
    ordered = sorted(pods(), key=lambda pod: (pod["spec"]["nodeName"], pod["metadata"]["name"]))
    yield [_container(deployment, pod) for pod in ordered]
    deployment.kubectl("delete", "deployment", mode.deployment)
    deployment.wait(
        f"the pods and claims of {mode.deployment} to be gone",
        lambda: not deployment.get("pods", "-l", selector) and not deployment.get("resourceclaims"),
        within=_RUN_WITHIN_S,
    )


def cards(empty: Sequence[CardUse], containers: Sequence[Container]) -> list[CardUse]:
    """The cards as the containers use them."""
    return [_used(card, [one for one in containers if one.row.uuid == card.uuid]) for card in empty]


def _used(card: CardUse, containers: Sequence[Container]) -> CardUse:
    return replace(
        card,
        shares=len(containers),
        memory_used_mib=sum(one.memory_mib for one in containers),
        exclusive=False,
    )


def _manifest(deployment: Deployment, mode: Mode) -> list[dict[str, Any]]:
    """The same manifest as everywhere, with the image that the cluster has."""
    objects = list(yaml.safe_load_all(mode.manifest.read_text("utf-8")))
    for item in objects:
        for container in item["spec"]["template"]["spec"]["containers"]:
            container["image"] = deployment.state["image"]
            container["imagePullPolicy"] = "Never"
    return objects


def _container(deployment: Deployment, pod: dict[str, Any]) -> Container:
    name = pod["metadata"]["name"]
    environment = deployment.kubectl("exec", name, "--", "env").splitlines()
    found = [match for line in environment if (match := _CARD.fullmatch(line.strip()))]
    memory = [match for line in environment if (match := _MEMORY.fullmatch(line.strip()))]
    if len(found) != 1 or len(memory) != 1:
        raise ClusterDemoError(
            f"pod {name} sees {len(found)} cards and {len(memory)} limits, expected one of each"
        )
    row = Row(name, pod["spec"]["nodeName"], int(found[0]["index"]), found[0]["uuid"])
    return Container(row, int(memory[0]["mib"]))


def _cluster(*arguments: str) -> str:
    """Run hack/cluster; what it says of its progress goes to the screen."""
    command = [str(ROOT / "hack" / "cluster"), *arguments, "--name", NAME]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise ClusterDemoError(f"{' '.join(command)} failed; what it said stands above")
    return done.stdout
