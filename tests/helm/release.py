"""The chart installed on a cluster of hack/cluster, as its administrator sees it."""

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.kubernetes import layout
from tests.cluster.site import hack_cluster
from tests.helm import image
from tests.helm.chart import CHART, NAMESPACE, Object

NAME = "quadrant"
LEADER = "quadrant.dev/leader=true"
VALUES: Object = {
    "image": {"repository": image.REPOSITORY, "tag": image.TAG, "pullPolicy": "Never"},
    "inventory": {"simulated": {"profile": "4xT4"}},
    "deviceClass": {"extendedResourceName": "nvidia.com/gpu"},
    "logLevel": "debug",
}
MARKS = [
    pytest.mark.cluster,
    pytest.mark.image,
    pytest.mark.skipif(os.geteuid() != 0, reason="nodes need root: namespaces and mounts"),
    pytest.mark.skipif(
        bool(image.missing()),
        reason=f"no image without: apt-get install --no-install-recommends {image.missing()}",
    ),
]
"""What a module needs that installs the chart from the image."""


@contextlib.contextmanager
def cluster(name: str, *, nodes: str) -> Iterator["Release"]:
    """A cluster with the image in its nodes, and nothing installed yet."""
    archive = image.archive(layout.cache())
    hack_cluster(name, "down")
    hack_cluster(name, "up", "--nodes", nodes, "--json-storage")
    try:
        made = Release(json.loads(hack_cluster(name, "status", "-o", "json")))
        made.load_image(archive)
        yield made
    finally:
        hack_cluster(name, "down")


class Release:
    """One release, by the state that `hack/cluster status -o json` prints."""

    def __init__(self, state: Object) -> None:
        self.state = state

    def load_image(self, archive: Path) -> None:
        """Put the image into every node."""
        for node in self.state["nodes"]:
            ctr = (self.state["bin"]["ctr"], "--address", node["containerd_socket"])
            self._run(*ctr, "-n", "k8s.io", "images", "import", "--no-unpack", str(archive))

    # Helm

    def install(self, **values: Any) -> None:
        """Install the chart and wait until all of its pods are ready."""
        self._deploy("install", "--create-namespace", **(VALUES | values))

    def upgrade(self, *options: str, **values: Any) -> None:
        """Change values, and wait until the new pods are ready."""
        self._deploy("upgrade", *options, **(VALUES | values))

    def rollback(self) -> None:
        """Go back to how it was before the last change."""
        self.helm("rollback", NAME, "--namespace", NAMESPACE, "--wait", "--timeout", "300s")

    def uninstall(self) -> None:
        """Take the release away."""
        self.helm("uninstall", NAME, "--namespace", NAMESPACE, "--wait", "--timeout", "300s")

    def _deploy(self, verb: str, *arguments: str, **values: Any) -> None:
        place = (NAME, str(CHART), "--namespace", NAMESPACE, *arguments)
        self.helm(verb, *place, "--wait", "--timeout", "300s", "-f", "-", given=json.dumps(values))

    def helm(self, *arguments: str, given: str = "") -> str:
        """Run Helm; its output."""
        return self._client("helm", *arguments, given=given)

    def refused_install(self, *arguments: str) -> str:
        """Run Helm, which must fail; why it does."""
        return self._refused("helm", *arguments, given="")

    # kubectl

    def kubectl(self, *arguments: str, given: str = "") -> str:
        """Run kubectl; its output."""
        return self._client("kubectl", *arguments, given=given)

    def refused(self, *arguments: str, given: str) -> str:
        """Run kubectl, which must fail; why it does."""
        return self._refused("kubectl", *arguments, given=given)

    def get(self, *arguments: str) -> list[Object]:
        """The objects that `kubectl get` finds."""
        found = json.loads(self.kubectl("get", "-o", "json", *arguments))
        return list(found.get("items", [found]))

    def pods(self, *selectors: str) -> dict[str, Object]:
        """The pods of the release with these labels that are not about to go, by name."""
        labels = ",".join(("app.kubernetes.io/name=quadrant", *selectors))
        found = self.get("-n", NAMESPACE, "pods", "-l", labels)
        return {
            pod["metadata"]["name"]: pod
            for pod in found
            if "deletionTimestamp" not in pod["metadata"]
        }

    def leader(self) -> str:
        """The pod that is labelled as the leader's, of which there is at most one; or empty."""
        (name,) = self.pods(LEADER) or [""]
        return name

    def settle(self) -> None:
        """Wait until all pods of the release are ready, and one leads."""
        for workload in ("deployment/quadrant-controller", "daemonset/quadrant-node"):
            self.kubectl("-n", NAMESPACE, "rollout", "status", workload, "--timeout=300s")
        self.wait("a leader", lambda: bool(self.leader()))

    def logs(self) -> str:
        """What all processes of the release have said."""
        return "\n".join(
            self.kubectl("-n", NAMESPACE, "logs", name, "--tail=-1") for name in self.pods()
        )

    @contextlib.contextmanager
    def frozen(self, component: str) -> Iterator[None]:
        """A part of Kubernetes does nothing for a while."""
        for_it = (self.state["name"], "kill", component, "--signal")
        hack_cluster(*for_it, "STOP")
        try:
            yield
        finally:
            hack_cluster(*for_it, "CONT")

    def unanswered(self) -> list[str]:
        """What the API server says of calls of our webhooks that came to nothing, so far.

        While nobody leads, the Service of the commit hook leads nowhere: that is as it should be,
        and left out.
        """
        log = Path(self.state["root"]) / "logs" / "kube-apiserver.log"
        lines = log.read_text(errors="replace").splitlines()
        nobody_leads = 'no endpoints available for service "quadrant-commit"'
        return [
            line for line in lines if "ailed calling webhook" in line and nobody_leads not in line
        ]

    # Pods

    def run_pod(self, name: str, **limits: int) -> str:
        """Run a pod with these limits (`gpu`, `gpumem`) until it is ready; what it sees."""
        metadata = {"name": name}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": self.spec(**limits)}
        self.kubectl("apply", "-f", "-", given=json.dumps(pod))
        self.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=120s")
        return self.kubectl("logs", name)

    def spec(self, **limits: int) -> Object:
        """Of a pod that asks for this, tells its environment, and stays."""
        container = self.container(resources={"limits": limits_of(**limits)})
        return {"containers": [container], "terminationGracePeriodSeconds": 0}

    def container(self, script: str = "env", **more: Any) -> Object:
        """A container that runs a script, and stays until it is told to go."""
        return {
            "name": "main",
            **more,
            "image": self.state["image"],
            "imagePullPolicy": "Never",
            "command": ["sh", "-c", f"{script}; exec sleep 100000"],
        }

    def wait(self, what: str, met: Callable[[], bool], *, within: float = 120.0) -> None:
        """Ask until it is so."""
        ends = time.monotonic() + within
        while not met():
            assert time.monotonic() < ends, f"waited {within:.0f} s for {what}"
            time.sleep(0.5)

    def _refused(self, program: str, *arguments: str, given: str) -> str:
        done = self._start(program, *arguments, given=given)
        assert done.returncode != 0, done.stdout
        return done.stderr

    def _client(self, program: str, *arguments: str, given: str) -> str:
        done = self._start(program, *arguments, given=given)
        assert done.returncode == 0, f"{program} {arguments}: {done.stdout}{done.stderr}"
        return done.stdout

    def _start(self, program: str, *arguments: str, given: str) -> subprocess.CompletedProcess[str]:
        access = ("--kubeconfig", self.state["kubeconfig"])
        command = (self.state["bin"][program], *access, *arguments)
        return subprocess.run(command, input=given, capture_output=True, text=True, check=False)

    def _run(self, *command: str) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


def limits_of(**limits: int) -> Object:
    """Extended resources by their short names."""
    return {f"nvidia.com/{resource}": amount for resource, amount in limits.items()}
