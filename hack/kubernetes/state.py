"""What does a cluster consist of? Must not change anything but the state file.

The file is the contract with the tests: ``hack/cluster status -o json`` prints it. It is written
before each step whose traces must be found again, so that a crash at any point can be cleaned up.
"""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .layout import Layout
from .process import Identity


@dataclass(frozen=True)
class Component:
    """One program of the cluster: how it is started, how its health is asked, its process."""

    name: str
    argv: tuple[str, ...]
    log: str
    group: str
    """The ``cgroup.procs`` file that it enters; empty for none."""
    health: str
    """A URL, or the path of a unix socket; empty for a program that only has to run."""
    process: Identity | None = None


@dataclass(frozen=True)
class Node:
    """One node, with all that a node plugin started beside it has to know."""

    name: str
    gpus: str
    """What was asked for after ``=``, such as ``4xT4``; only recorded."""
    address: str
    pod_subnet: str
    kubelet_dir: str
    plugins_dir: str
    registry_dir: str
    cdi_dir: str
    containerd_socket: str


@dataclass(frozen=True)
class State:
    """One cluster."""

    name: str
    kubernetes: str
    root: str
    kubeconfig: str
    server: str
    etcd: str
    image: str
    network: int | None
    bin: dict[str, str]
    nodes: tuple[Node, ...] = ()
    components: tuple[Component, ...] = ()

    def component(self, name: str) -> Component | None:
        """The component with this name."""
        return next((part for part in self.components if part.name == name), None)

    def replace(self, component: Component) -> "State":
        """The state with this component put in the place of its namesake, or added."""
        parts = {part.name: part for part in self.components} | {component.name: component}
        return dataclasses.replace(self, components=tuple(parts.values()))


def save(layout: Layout, state: State) -> None:
    """Write the state so that a reader sees the old or the new one, never half of it."""
    part = layout.state.with_suffix(".part")
    part.write_text(json.dumps(dataclasses.asdict(state), indent=2) + "\n", encoding="utf-8")
    part.replace(layout.state)


def load(layout: Layout) -> State | None:
    """The recorded state; None where no cluster of this name is, or its record is unreadable."""
    try:
        raw: dict[str, Any] = json.loads(layout.state.read_text(encoding="utf-8"))
        raw["nodes"] = tuple(Node(**node) for node in raw["nodes"])
        raw["components"] = tuple(_component(part) for part in raw["components"])
        return State(**raw)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _component(raw: dict[str, Any]) -> Component:
    process = Identity(**raw["process"]) if raw["process"] else None
    return Component(**{**raw, "argv": tuple(raw["argv"]), "process": process})


def log_of(layout: Layout, component: str) -> Path:
    """The log file of a component; ``kubelet/t4`` becomes ``kubelet-t4.log``."""
    return layout.logs / f"{component.replace('/', '-')}.log"
