"""Does hack/cluster bring up a real cluster, and leave nothing when it goes?"""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hack.kubernetes import cgroup, process

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(os.geteuid() != 0, reason="nodes need root: namespaces and mounts"),
]


@dataclass(frozen=True)
class Cluster:
    """One cluster, by name, as a person drives it."""

    name: str

    def run(self, *arguments: str) -> str:
        """Run hack/cluster and return what it printed."""
        command = [str(ROOT / "hack" / "cluster"), *arguments, "--name", self.name]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=1800)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def refused(self, *arguments: str) -> str:
        """Run hack/cluster, which has to refuse, and return what it said."""
        command = [str(ROOT / "hack" / "cluster"), *arguments, "--name", self.name]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=1800)
        assert done.returncode == 1
        return done.stderr

    def status(self) -> dict[str, Any]:
        """The state as tests read it."""
        found: dict[str, Any] = json.loads(self.run("status", "-o", "json"))
        return found

    def kubectl(self, *arguments: str, given: str = "") -> str:
        """Run kubectl as administrator."""
        state = json.loads(Path(f"/srv/qdr/{self.name}/state.json").read_text())
        command = [state["bin"]["kubectl"], "--kubeconfig", state["kubeconfig"], *arguments]
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, input=given, timeout=120
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def run_pods(self, *nodes: str) -> None:
        """Run a small web server that answers with its pod's name on each of the nodes."""
        for node in nodes:
            self.kubectl("apply", "-f", "-", given=json.dumps(_pod(node)))
        names = [f"pod/on-{node}" for node in nodes]
        self.kubectl("wait", "--for=condition=Ready", "--timeout=60s", *names)

    def address(self, node: str) -> str:
        """The pod's address."""
        return self.kubectl("get", "pod", f"on-{node}", "-o", "jsonpath={.status.podIP}")


def _pod(node: str) -> dict[str, object]:
    script = "echo hello from $HOSTNAME; echo $HOSTNAME >/tmp/index.html; httpd -f -p 80 -h /tmp"
    container = {
        "name": "web",
        "image": "quadrant.dev/busybox:test",
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", script],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"on-{node}"},
        "spec": {"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [container]},
    }


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A name of its own, down before and after."""
    one = Cluster("selftest")
    one.run("down")
    yield one
    one.run("down")


def _interfaces() -> set[str]:
    return {link["ifname"] for link in json.loads(_output("ip", "-json", "link"))}


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _traces(name: str, state: dict[str, Any]) -> list[str]:
    """Everything on this machine that could only have come from this cluster."""
    groups = [str(p) for p in Path("/sys/fs/cgroup").rglob(f"quadrant-{name}")]
    mounts = [
        m for m in Path("/proc/self/mountinfo").read_text().splitlines() if state["root"] in m
    ]
    running = [c["name"] for c in state["components"] if _alive(c["process"])]
    interfaces = sorted(_interfaces() & {f"quad{state['network']}"})
    folders = [state["root"]] if Path(state["root"]).exists() else []
    routes = [r for r in _output("ip", "route").splitlines() if f"quad{state['network']} " in r]
    return groups + mounts + running + interfaces + folders + routes


def _alive(recorded: dict[str, Any]) -> bool:
    return process.alive(process.Identity(**recorded))


def _packet_filter() -> str:
    return _output("iptables-save") if shutil.which("iptables-save") else ""


def test_two_nodes_come_up_run_pods_and_leave_nothing(cluster: Cluster) -> None:
    """Logs, exec, the network between nodes and the in-cluster API work; down removes it all."""
    rules = _packet_filter()
    cluster.run("up", "--nodes", "t4=4xT4,a10g=4xA10G")
    cluster.run_pods("t4", "a10g")
    state = cluster.status()
    assert [(n["name"], n["gpus"]) for n in state["nodes"]] == [("t4", "4xT4"), ("a10g", "4xA10G")]
    assert all(part["running"] for part in state["components"])
    assert cluster.kubectl("logs", "on-t4") == "hello from on-t4\n"
    assert cluster.kubectl("exec", "on-a10g", "--", "hostname") == "on-a10g\n"
    for client, server in (("t4", "a10g"), ("a10g", "t4"), ("t4", "t4")):
        url = f"http://{cluster.address(server)}/"
        answer = cluster.kubectl("exec", f"on-{client}", "--", "wget", "-q", "-O-", url)
        assert answer == f"on-{server}\n"
    cluster.kubectl("exec", "on-t4", "--", "nc", "-w", "3", "10.96.0.1", "443")
    members = {pid: process.identify(pid) for pid in cgroup.members(cluster.name)}
    assert len(members) > len(state["components"]), "containers are members too"
    namespaces = _network_namespaces(members) - _network_namespaces([os.getpid()])
    assert len(namespaces) == 5, "the switch, two nodes, two pods"

    assert "is running" in cluster.refused("up")
    cluster.run("down")
    assert _traces(cluster.name, state) == []
    assert not [pid for pid, known in members.items() if process.alive(known)]
    assert _packet_filter() == rules
    everyone = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    assert not namespaces & _network_namespaces(everyone)


def _network_namespaces(pids: Iterable[int]) -> set[str]:
    found = set()
    for pid in pids:
        with suppress(OSError):
            found.add(str(Path(f"/proc/{pid}/ns/net").readlink()))
    return found


def test_components_are_killed_frozen_and_restarted(cluster: Cluster) -> None:
    """Only the named component changes, and running containers outlive kubelet and containerd."""
    cluster.run("up", "--nodes", "t4=4xT4")
    cluster.run_pods("t4")
    before = {part["name"]: part["process"] for part in cluster.status()["components"]}
    cluster.run("kill", "kube-scheduler")
    assert "kube-scheduler" in cluster.refused("kill", "kube-scheduler")
    cluster.run("kill", "kube-controller-manager", "--signal", "STOP")
    assert _stat_letter(before["kube-controller-manager"]["pid"]) == "T"
    cluster.run("kill", "kube-controller-manager", "--signal", "CONT")
    restarted = ("kube-scheduler", "kube-apiserver", "kubelet/t4", "containerd/t4")
    for name in restarted:
        cluster.run("restart", name)
    after = {part["name"]: part["process"] for part in cluster.status()["components"]}
    assert {name for name in before if before[name] != after[name]} == set(restarted)
    cluster.kubectl("wait", "--for=condition=Ready", "--timeout=60s", "node/t4", "pod/on-t4")
    assert cluster.kubectl("exec", "on-t4", "--", "hostname") == "on-t4\n"
    count = "jsonpath={.status.containerStatuses[0].restartCount}"
    assert cluster.kubectl("get", "pod", "on-t4", "-o", count) == "0"
    assert "has no component 'kube-proxy'" in cluster.refused("restart", "kube-proxy")
    assert "cannot be restarted" in cluster.refused("restart", "machine/t4")
    cluster.run("kill", "machine/t4")
    assert "cannot be restarted" in cluster.refused("restart", "kubelet/t4")


def _stat_letter(pid: int) -> str:
    return process.parse_stat(Path(f"/proc/{pid}/stat").read_text())[0]


def test_up_after_everything_was_killed_starts_anew(cluster: Cluster) -> None:
    """Containers of the old cluster are left running by the crash, and ended by the next up."""
    cluster.run("up", "--nodes", "t4=4xT4")
    cluster.run_pods("t4")
    old = cluster.status()
    for part in old["components"]:
        process.send(process.Identity(**part["process"]), signal.SIGKILL)
    orphans = [known for pid in cgroup.members(cluster.name) if (known := process.identify(pid))]
    assert orphans, "the pod's containers and shim outlive their kubelet"

    cluster.run("up", "--nodes", "a10g=4xA10G")
    assert not [known for known in orphans if process.alive(known)]
    assert cluster.kubectl("get", "pods", "-o", "name") == ""
    cluster.run_pods("a10g")
    state = cluster.status()
    cluster.run("down")
    assert _traces(cluster.name, state) == []


def test_two_clusters_run_side_by_side(cluster: Cluster) -> None:
    """Neither sees the other's objects, and the end of one does not touch the other."""
    other = Cluster(f"{cluster.name}2")
    cluster.run("up", "--nodes", "t4=4xT4")
    try:
        other.run("up", "--nodes", "t4=4xT4")
        cluster.run_pods("t4")
        assert other.kubectl("get", "pods", "-o", "name") == ""
        one, two = cluster.status(), other.status()
        for field in ("server", "etcd", "root", "network"):
            assert one[field] != two[field]
    finally:
        other.run("down")
    assert all(part["running"] for part in cluster.status()["components"])
    assert cluster.kubectl("exec", "on-t4", "--", "hostname") == "on-t4\n"


def test_a_cluster_without_a_record_is_removed(cluster: Cluster) -> None:
    """The control group alone proves what belongs to it; the record may be lost or broken."""
    cluster.run("up", "--nodes", "t4=4xT4")
    state = cluster.status()
    (Path(state["root"]) / "state.json").write_text("{")
    cluster.run("down")
    assert _traces(cluster.name, state) == []
