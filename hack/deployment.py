"""Quadrant on a local cluster, from this checkout: a controller and a node plugin per node.

Used by the tests and by `hack/demo --cluster`. The processes run on the host, beside the cluster's
own, with the cluster's admin rights; the chart is what runs it in pods.
"""

import base64
import http
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

from driver.admission import configuration
from driver.controller.translate import ResourceNames

REPOSITORY = Path(__file__).resolve().parent.parent
NAMESPACE = "quadrant-system"
START_WITHIN_S = 120.0


class DeploymentError(Exception):
    """A part did not start, or ended; the end of its log is in the text."""


class Part:
    """One process of the deployment, started again as often as wanted; its log goes on."""

    def __init__(self, name: str, argv: list[str], log: Path) -> None:
        self.name = name
        self.log = log
        self._argv = argv
        self._process: subprocess.Popen[bytes] | None = None
        self._wanted = False
        self._log_begins = 0

    @property
    def crashed(self) -> bool:
        """Whether its process has ended though nobody ended it."""
        return self._wanted and self._process is not None and self._process.poll() is not None

    @property
    def pid(self) -> int:
        """Its process, also when that has ended."""
        if self._process is None:
            raise DeploymentError(f"{self.name} was never started")
        return self._process.pid

    def start(self) -> None:
        """Start it; does not wait until it works."""
        self._wanted = True
        with self.log.open("ab") as log:
            self._log_begins = log.tell()
            self._process = subprocess.Popen(
                self._argv,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=REPOSITORY,
                env=os.environ | {"PYTHONUNBUFFERED": "1"},
            )

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._wanted = number not in {signal.SIGKILL, signal.SIGTERM}
        if self._process is not None:
            self._process.send_signal(number)

    def stop(self, number: signal.Signals = signal.SIGTERM, *, within: float = 15.0) -> None:
        """End it and wait for that; killed when it takes longer than `within` seconds."""
        self._wanted = False
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGCONT)
        self._process.send_signal(number)
        try:
            self._process.wait(within)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def said(self, text: str) -> bool:
        """Whether its log has this text since it was last started."""
        return text.encode() in self.log.read_bytes()[self._log_begins :]

    def tail(self, lines: int = 30) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


class Deployment:
    """Quadrant on one cluster, by the state that `hack/cluster status -o json` prints."""

    def __init__(
        self,
        state: dict[str, Any],
        folder: Path,
        *,
        controllers: int = 1,
        policy: str = "compact",
        kubeconfigs: Sequence[str] = (),
    ) -> None:
        """`kubeconfigs`: of each controller, where they do not reach the API server directly."""
        self.state = state
        self.folder = folder
        self._kubeconfigs = kubeconfigs or [state["kubeconfig"]] * controllers
        self._ports = [free_port() for _ in range(2 * controllers)]
        self.controllers = [self._controller(index, policy) for index in range(controllers)]
        self.nodes = {node["name"]: self._node(node) for node in state["nodes"]}

    @property
    def controller(self) -> Part:
        """The only controller, or the first."""
        return self.controllers[0]

    @property
    def address(self) -> str:
        """Where the API server finds the first controller's webhooks."""
        return f"https://127.0.0.1:{self.port(0)}"

    def port(self, controller: int) -> int:
        """Where a controller serves its webhooks."""
        return self._ports[2 * controller]

    def authority(self) -> bytes:
        """Whom the webhooks' callers should trust, as PEM."""
        secret = self.get("-n", NAMESPACE, "secret", "quadrant-webhooks")[0]
        return base64.b64decode(secret["data"]["trusted.crt"])

    # Life

    def up(self) -> None:
        """Classes, webhooks, controller, plugins; returns when all of it works."""
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        self.apply_file(REPOSITORY / self._class_file())
        for part in self.nodes.values():
            part.start()
        self.controller.start()
        self.wait_ready(self.controller, self._ports[1])
        self.install_webhooks()
        self.wait("the published devices", self._published)
        self.wait("the first answer", self._leads)

    def install_webhooks(self, address: str = "") -> None:
        """Let the API server ask who serves at this address; without one the first controller."""
        authority = self.authority()
        resources = {*ResourceNames().all(), "nvidia.com/gpu"}
        at = address or self.address
        self.apply(configuration.commit_configuration(at, authority))
        self.apply(
            configuration.pods_configuration(
                at, authority, resources=resources, own_namespace=NAMESPACE
            )
        )
        self.apply(configuration.configs_configuration(at, authority))

    def remove_webhooks(self, *names: str) -> None:
        """Take these webhook configurations away."""
        for name in names:
            self.kubectl("delete", "mutatingwebhookconfiguration", name, "--ignore-not-found")

    def down(self) -> None:
        """End all processes; what is in the cluster stays."""
        for part in (*self.controllers, *self.nodes.values()):
            part.stop()

    def start_controller(self) -> None:
        """Start the controller again, and wait until it answers commits."""
        self.controller.start()
        self.wait_ready(self.controller, self._ports[1])
        self.wait("the first answer", self._leads)

    def start_standby(self, controller: int = 1) -> None:
        """Start a controller beside one that leads, and wait until it could lead."""
        self.controllers[controller].start()
        self.wait_ready(self.controllers[controller], self._ports[2 * controller + 1])

    def replace_cards(self, node: str, gpus: str, *, shareable: bool = True) -> None:
        """Let a node have other cards, such as 8xH100-SXM; no pod may use the old ones."""
        self.nodes[node].stop()
        (known,) = (one for one in self.state["nodes"] if one["name"] == node)
        self.nodes[node] = self._node({**known, "gpus": gpus}, shareable=shareable)
        self.nodes[node].start()

    def restart_node(self, node: str, *flags: str) -> None:
        """Run a node's plugin with these options from now on."""
        self.nodes[node].stop()
        (known,) = (one for one in self.state["nodes"] if one["name"] == node)
        self.nodes[node] = self._node(known, *flags)
        self.nodes[node].start()

    # kubectl

    def kubectl(self, *args: str, stdin: str | None = None, check: bool = True) -> str:
        """Run kubectl; its output. Raises with its errors when it fails."""
        done = subprocess.run(
            [self.state["bin"]["kubectl"], "--kubeconfig", self.state["kubeconfig"], *args],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode != 0:
            raise DeploymentError(f"kubectl {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout

    def get(self, *args: str) -> list[dict[str, Any]]:
        """The objects that `kubectl get` finds."""
        found = json.loads(self.kubectl("get", "-o", "json", *args))
        return list(found.get("items", [found]))

    def apply(self, *objects: dict[str, Any]) -> None:
        """Create or update objects."""
        self.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(objects))

    def apply_file(self, file: Path) -> None:
        """Create or update what is in a manifest file."""
        self.kubectl("apply", "--server-side", "-f", str(file))

    # Waiting

    def wait(self, what: str, met: Callable[[], bool], *, within: float = START_WITHIN_S) -> None:
        """Ask until it is so; raises `DeploymentError` with the logs when it takes too long."""
        ends = time.monotonic() + within
        while not met():
            crashed = [part for part in (*self.controllers, *self.nodes.values()) if part.crashed]
            if crashed or time.monotonic() > ends:
                logs = "\n".join(
                    f"--- {part.name}\n{part.tail()}" for part in crashed or [self.controller]
                )
                why = "a process ended" if crashed else f"{within:.0f} s were not enough"
                raise DeploymentError(f"waiting for {what}: {why}\n{logs}")
            time.sleep(0.1)

    def wait_ready(self, part: Part, port: int) -> None:
        """Wait until a controller says that it is ready."""
        self.wait(f"{part.name} to be ready", lambda: _ready(port))

    def _published(self) -> bool:
        nodes = {item["spec"].get("nodeName") for item in self.get("resourceslices")}
        return set(self.nodes) <= nodes

    def _leads(self) -> bool:
        return self.controller.said('"message":"leading"')

    # Parts

    def _controller(self, index: int, policy: str) -> Part:
        port, health_port = self._ports[2 * index : 2 * index + 2]
        settings = {
            "kubeconfig": self._kubeconfigs[index],
            "namespace": NAMESPACE,
            "identity": identity(index),
            "listen-port": port,
            "webhook-address": f"https://127.0.0.1:{port}",
            "health-port": health_port,
            "node-policy": policy,
            "gpu-policy": policy,
        }
        return self._part(f"controller-{index}", "controller", settings)

    def _node(self, node: dict[str, Any], *flags: str, shareable: bool = True) -> Part:
        settings = {
            "node-name": node["name"],
            "simulate": node["gpus"],
            "kubeconfig": self.state["kubeconfig"],
            "plugins-dir": node["plugins_dir"],
            "registry-dir": node["registry_dir"],
            "cdi-dir": node["cdi_dir"],
        }
        flags += () if shareable else ("--no-shareable",)
        return self._part(f"node-{node['name']}", "node", settings, *flags)

    def _part(self, name: str, command: str, settings: dict[str, Any], *flags: str) -> Part:
        options = [f"--{key}={value}" for key, value in settings.items()]
        argv = [sys.executable, "-m", "driver.cli", command, *options, *flags]
        return Part(name, argv, self.folder / f"{name}.log")

    def _class_file(self) -> str:
        served = tuple(int(part) for part in self.state["kubernetes"].split(".")[:2])
        if served >= (1, 36):
            return "examples/extended-resource/deviceclass.yaml"
        return "deviceclasses/gpu.yaml"


def identity(controller: int) -> str:
    """What a controller of this process calls itself in the Lease, before a part of its own."""
    return f"controller-{controller}-{os.getpid()}"


def free_port() -> int:
    """A TCP port of the loopback address that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1) as reply:
            return bool(reply.status == http.HTTPStatus.OK)
    except OSError:
        return False
