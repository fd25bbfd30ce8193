"""One cluster with Quadrant on it, as the tests of this folder see it: ask, wait, clean up."""

import contextlib
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hack.deployment import Deployment, DeploymentError
from tests.cluster import history, workloads
from tests.cluster.api import Api, Object

ROOT = Path(__file__).parents[2]
WITHIN_S = 120.0

_NEVER = ("Traceback", "device allocated twice")
_CARD = re.compile(r"QUADRANT_DEVICE_(\d+)=index=(\d+),uuid=([^,]+),model=(.*)")


def hack_cluster(name: str, *arguments: str) -> str:
    """Run hack/cluster; what it prints."""
    command = [str(ROOT / "hack" / "cluster"), *arguments, "--name", name]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=1800)
    assert done.returncode in {0, 1}, f"{command}: {done.stdout}{done.stderr}"
    assert done.returncode == 0 or arguments[0] == "status", f"{command}: {done.stderr}"
    return done.stdout


class Site:
    """The cluster, its API, and the processes of Quadrant."""

    def __init__(self, state: Object, deployment: Deployment, api: Api) -> None:
        self.state = state
        self.deployment = deployment
        self.api = api
        self._judge = history.Judge(state["etcd"])

    # Asking

    def restart(self, component: str) -> None:
        """Stop a part of Kubernetes, start it again, wait until it is ready."""
        hack_cluster(self.state["name"], "restart", component)

    def signal(self, component: str, name: str) -> None:
        """Send a part of Kubernetes a signal."""
        hack_cluster(self.state["name"], "kill", component, "--signal", name)

    @contextlib.contextmanager
    def frozen(self, component: str) -> Iterator[None]:
        """A part of Kubernetes does nothing for a while."""
        self.signal(component, "STOP")
        try:
            yield
        finally:
            self.signal(component, "CONT")

    def pod(self, name: str) -> Object:
        """A pod that has to be there."""
        found = self.api.get("pods", name)
        assert found is not None, f"pod {name} is gone"
        return found

    def node_of(self, pod: str) -> str:
        """Where a pod was bound to; empty when it is not."""
        return str(self.pod(pod)["spec"].get("nodeName", ""))

    def devices_of(self, pod: str) -> list[tuple[str, str]]:
        """The devices that are allocated to a pod's claims, in order of the claims."""
        found = self.pod(pod)
        status = found.get("status", {})
        made = {
            one["name"]: one.get("resourceClaimName")
            for one in status.get("resourceClaimStatuses", [])
        }
        names = [
            one.get("resourceClaimName") or made.get(one["name"])
            for one in found["spec"].get("resourceClaims", [])
        ]
        special = status.get("extendedResourceClaimStatus", {}).get("resourceClaimName")
        claims = [self.api.get("claims", name) for name in [*names, special] if name]
        return [
            (one["pool"], one["device"])
            for claim in claims
            if claim
            for one in history.results(claim)
        ]

    def environment(self, pod: str, container: str = "main") -> dict[str, str]:
        """The environment that a container prints at its start."""
        lines: list[str] = []

        def printed() -> bool:
            lines[:] = self.api.log(pod, container).splitlines()
            return workloads.END in lines

        self.wait(f"container {container} of pod {pod} to print its environment", printed)
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def cdi_files(self) -> list[str]:
        """The CDI files of our driver on all nodes."""
        return [
            f"{node['name']}/{file.name}"
            for node in self.state["nodes"]
            for file in sorted(Path(node["cdi_dir"]).glob("k8s.gpu.quadrant.dev-claim_*"))
        ]

    def allocated(self) -> list[Object]:
        """The claims that have devices; none of them may be there twice or too much."""
        claims = [claim for claim in self.api.list("claims") if history.results(claim)]
        published = history.devices(self.api.list("slices"))
        overused = history.overused(map(history.results, claims), published)
        assert not overused
        return claims

    # Doing

    def run(self, *pods: Object) -> list[str]:
        """Create pods and wait until all of them run; their names."""
        names = [str(self.api.create("pods", pod)["metadata"]["name"]) for pod in pods]
        self.running(*names)
        return names

    def claim_card(
        self, name: str, node: str, wanted: Object, annotations: dict[str, str] | None = None
    ) -> str:
        """Create a pod on the node with a claim of the same name for it; the name."""
        self.api.create("claims", workloads.claim(name, wanted, annotations=annotations))
        uses = {"gpu": workloads.existing(name)}
        self.api.create("pods", workloads.pod(name, claims=uses, node=node))
        return name

    def running(self, *names: str) -> None:
        """Wait until all containers of these pods run and have printed what they see."""
        waiting = set(names)

        def all_run() -> bool:
            for pod in self.api.list("pods"):
                if pod["metadata"]["name"] in waiting and _started(pod):
                    waiting.discard(pod["metadata"]["name"])
            return not waiting

        self.wait(lambda: f"pods to run: {self._stories(waiting)}", all_run)

    def replace_cards(self, node: str, gpus: str, *, shareable: bool = True) -> None:
        """Let a node have other cards; no pod may use the old ones."""
        self.require_no_double_use()
        self.deployment.replace_cards(node, gpus, shareable=shareable)
        count, model = gpus.split("x", 1)

        def published() -> bool:
            found = history.devices(self.api.list("slices"))
            cards = [device for (pool, _), device in found.items() if pool == node]
            return len(cards) == int(count) and all(
                attribute(card, "productName").replace(" ", "-").endswith(model)
                and card.get("allowMultipleAllocations", False) == shareable
                for card in cards
            )

        self.wait(f"{gpus} on node {node}", published)

    def delete(self, *names: str) -> None:
        """Delete pods and wait until they are gone."""
        for name in names:
            self.api.delete("pods", name)
        self.wait(
            lambda: f"pods {names} to be gone",
            lambda: all(self.api.get("pods", name) is None for name in names),
        )

    def wait(
        self, what: str | Callable[[], str], met: Callable[[], bool], *, within: float = WITHIN_S
    ) -> None:
        """Ask until it is so; fails with the end of the controller's log."""
        ends = time.monotonic() + within
        while not met():
            if time.monotonic() > ends:
                text = what if isinstance(what, str) else what()
                log = self.deployment.controller.tail(20)
                raise DeploymentError(f"waited {within:.0f} s for {text}\n{log}")
            time.sleep(0.05)

    def condition(self, pod: str) -> tuple[str, str]:
        """Why a pod is not scheduled: reason and message; both empty when nobody has tried."""
        conditions = self.pod(pod).get("status", {}).get("conditions", [])
        found = [one for one in conditions if one["type"] == "PodScheduled"]
        return (found[0].get("reason", ""), found[0].get("message", "")) if found else ("", "")

    def require_no_double_use(self) -> None:
        """Go through all that has happened to claims since last time."""
        assert self._judge.wrongs(history.devices(self.api.list("slices"))) == []

    def faults(self) -> list[str]:
        """What the processes of Quadrant say that must never be said."""
        parts = [*self.deployment.controllers, *self.deployment.nodes.values()]
        ended = [f"{part.name} has ended: {part.tail()}" for part in parts if part.crashed]
        return ended + [
            f"{part.name}: {line}"
            for part in parts
            for line in part.log.read_text(errors="replace").splitlines()
            if any(words in line for words in _NEVER)
        ]

    # Cleaning up

    def clear(self) -> None:
        """Delete what a test has made, and wait until nothing of it is left anywhere."""
        for kind in ("deployments", "pods", "templates"):
            self.api.delete_all(kind)
        for claim in self.api.list("claims"):
            # Those of pods have to go by themselves.
            if not claim["metadata"].get("ownerReferences"):
                self.api.delete("claims", claim["metadata"]["name"])
        for node in self.api.list("nodes"):
            if node["spec"].get("unschedulable"):
                name = node["metadata"]["name"]
                self.api.patch("nodes", name, {"spec": {"unschedulable": None}})
        self.wait(lambda: f"these to be gone: {self._left()}", lambda: not self._left())

    def _left(self) -> list[str]:
        """What should not be there once all pods are gone."""
        kinds = ("deployments", "pods", "claims")
        left = [
            f"{kind}/{one['metadata']['name']}" for kind in kinds for one in self.api.list(kind)
        ]
        rules = [f"taintrules/{one['metadata']['name']}" for one in self.api.list("taintrules")]
        return [*left, *rules, *self.cdi_files()]

    def _stories(self, names: set[str]) -> list[str]:
        events: dict[str, list[str]] = {name: [] for name in names}
        for event in self.api.list("events"):
            about = (event.get("regarding") or event.get("involvedObject", {})).get("name")
            if about in events:
                events[about].append(f"{event.get('reason')}: {event.get('message')}")
        return [f"{name} ({'; '.join(told[-4:])})" for name, told in sorted(events.items())]


def _started(pod: Object) -> bool:
    states = pod.get("status", {}).get("containerStatuses", [])
    return bool(states) and all("running" in one.get("state", {}) for one in states)


def uuids(environment: dict[str, str]) -> list[str]:
    """The cards that a container sees, by what is said of each; checked against each other."""
    lines = [f"{name}={value}" for name, value in environment.items()]
    cards = sorted(match.groups() for line in lines if (match := _CARD.fullmatch(line)))
    assert all(number == index for number, index, _, _ in cards)
    visible = environment["NVIDIA_VISIBLE_DEVICES"].split(",")
    assert sorted(uuid for _, _, uuid, _ in cards) == sorted(visible)
    return visible


def attribute(device: Object, name: str) -> Any:
    """The value of a published attribute; names without a domain are ours."""
    (value,) = device["attributes"][name].values()
    return value
