"""How does a whole cluster come up and go away? Must not know arguments or file formats."""

import dataclasses
import fcntl
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from . import (
    api,
    binaries,
    cgroup,
    component,
    controlplane,
    credentials,
    image,
    network,
    node,
    packages,
    ports,
    process,
    state,
)
from .controlplane import ControlPlane
from .errors import ClusterError
from .layout import Layout, cache, clusters, layout
from .network import Network
from .progress import say, step
from .state import Component, Node, State


@dataclass(frozen=True)
class Request:
    """The cluster that a person asks for."""

    name: str
    kubernetes: str
    nodes: tuple[node.NodeSpec, ...]
    options: controlplane.Options


@contextmanager
def locked(name: str) -> Iterator[Layout]:
    """Hold the cluster's lock: only one command changes it at a time. The kernel frees it."""
    place = layout(name)
    folder = cache() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield place


def up(request: Request) -> State:
    """Bring the cluster up; what a crashed one of the same name left is removed first."""
    if request.nodes and os.geteuid() != 0:
        raise ClusterError("nodes need root (namespaces, mounts): use sudo or --control-plane-only")
    packages.ensure(packages.NODES if request.nodes else packages.CONTROL_PLANE)
    programs = binaries.ensure(request.kubernetes, cache=cache())
    with locked(request.name) as place:
        _refuse_running(place)
        if _anything_left(place):
            with step("removed what an earlier run left"):
                _remove(place)
        try:
            return _Start(request, place, programs).run()
        except BaseException:
            say(f"  logs are in {place.logs} until the next up or down")
            raise


def down(name: str) -> bool:
    """Remove the cluster and all its traces; False when there was none. Idempotent."""
    with locked(name) as place:
        found = _anything_left(place)
        _remove(place)
        return found


def _refuse_running(place: Layout) -> None:
    found = state.load(place)
    if found and found.components and all(process.alive(p.process) for p in found.components):
        raise ClusterError(
            f"cluster {place.name} is running: hack/cluster down --name {place.name} ends it, "
            "--name OTHER brings up another one beside it"
        )


def _anything_left(place: Layout) -> bool:
    return place.root.exists() or (cgroup.usable() and cgroup.exists(place.name))


def _remove(place: Layout) -> None:
    """Kill by recorded identity and by control group, then remove network and folder.

    Nothing is asked to end: all data goes anyway. Mounts and network namespaces go with the last
    process in them.
    """
    found = state.load(place)
    recorded = [part.process for part in found.components] if found else []
    for one in recorded:
        process.send(one, signal.SIGKILL)
    if cgroup.usable():
        cgroup.remove(place.name)
    if not process.wait_gone(recorded, seconds=20):
        raise ClusterError(f"processes of cluster {place.name} survive SIGKILL: see ps -eo pid,stat")
    if found and found.network is not None:
        network.remove_interface(Network(found.network))
    if place.root.exists():
        shutil.rmtree(place.root)
    if clusters().is_dir() and not any(clusters().iterdir()):
        clusters().rmdir()


@dataclass
class _Start:
    """One cluster on its way up: the state grows, and is on the disk before each step."""

    request: Request
    place: Layout
    programs: dict[str, str]

    def run(self) -> State:
        """All steps; what takes long is started first and awaited last."""
        self.place.logs.mkdir(parents=True)
        self.network = self._choose_network()
        self.plane = self._plan()
        self.state = self._describe()
        state.save(self.place, self.state)
        token = self.plane.credentials.tokens[credentials.ADMIN]
        with step("etcd, kube-apiserver, containerd"):
            etcd = self._start(controlplane.etcd(self.plane))
            component.wait_ready(etcd, token)
            server = self._start(controlplane.api_server(self.plane))
            self._start_machines()
            component.wait_ready(server, token)
        with step("kube-scheduler, kube-controller-manager, kubelet"):
            started = [
                self._start(controlplane.scheduler(self.plane)),
                self._start(controlplane.controller_manager(self.plane)),
                *(self._start_kubelet(one) for one in self.state.nodes),
            ]
            for part in started:
                component.wait_ready(part, token)
        with step("nodes ready, pods can be created"):
            authority = self.plane.credentials.file("ca.crt")
            names = [one.name for one in self.state.nodes]
            api.wait_usable(self.plane.server, names, token=token, authority=authority)
        return self.state

    def _choose_network(self) -> Network | None:
        if not self.request.nodes:
            return None
        return network.choose_network(self.request.name, network.routes())

    def _plan(self) -> ControlPlane:
        hosts = [self.network.host] if self.network else []
        names = [spec.name for spec in self.request.nodes]
        chosen = ports.choose_ports(self.request.name, 5, ports.is_free)
        group = ""
        if self.request.nodes or cgroup.usable():
            cgroup.create(self.place.name, "control")
            group = str(cgroup.procs_file(self.place.name, "control"))
        plane = ControlPlane(
            layout=self.place,
            bin=self.programs,
            ports=controlplane.Ports(*chosen),
            credentials=credentials.make(self.place, hosts=hosts, nodes=names),
            options=self.request.options,
            host=self.network.host if self.network else None,
            group=group,
        )
        controlplane.write_kubeconfigs(plane)
        return plane

    def _describe(self) -> State:
        return State(
            name=self.place.name,
            kubernetes=self.request.kubernetes,
            root=str(self.place.root),
            kubeconfig=str(self.place.kubeconfig),
            server=self.plane.server,
            etcd=self.plane.etcd_url,
            image=image.TEST,
            network=self.network.index if self.network else None,
            bin=self.programs,
            nodes=tuple(
                node.describe(self.place, spec, network=self.network, number=number)
                for number, spec in enumerate(self.request.nodes)
                if self.network
            ),
        )

    def _start(self, part: Component) -> Component:
        started = component.start(self.state, part)
        self.state = self.state.replace(started)
        state.save(self.place, self.state)
        return started

    def _start_machines(self) -> None:
        """Namespaces, wires and containerd of every node, and the test image in each."""
        if not self.network:
            return
        wires, switch = self.network, self._hold(node.switch(self.place))
        network.build_switch(wires, switch)
        runtimes = []
        for number, one in enumerate(self.state.nodes):
            self._prepare(one)
            holder = self._hold(node.machine(self.place, one.name))
            network.shell(holder, node.machine_script(self.place, one))
            network.plug_node(wires, switch=switch, node=holder, number=number)
            network.route_node(
                wires, node=holder, number=number,
                nodes=len(self.state.nodes), api_port=self.plane.ports.api,
            )  # fmt: skip
            runtimes.append(
                self._start(node.containerd(self.place, one, bins=self.programs, holder=holder))
            )
        archive = image.archive(cache())
        for one, runtime in zip(self.state.nodes, runtimes, strict=True):
            component.wait_ready(runtime, "")
            load_image(self.state, one, str(archive))

    def _hold(self, part: Component) -> process.Identity:
        """Start an idle process and wait until it is in namespaces of its own."""
        started = self._start(part)
        assert started.process is not None  # noqa: S101 - a component just started has one
        own = os.stat("/proc/self/ns/net").st_ino
        deadline = time.monotonic() + 10
        while process.network_namespace(started.process) in (own, None):
            if time.monotonic() > deadline or not process.alive(started.process):
                raise ClusterError(f"{part.name} made no namespaces: see {part.log}")
            time.sleep(0.01)
        return started.process

    def _prepare(self, one: Node) -> None:
        config = node.kubelet_config(
            cluster=self.place.name, node=one, authority=self.plane.credentials.file("ca.crt")
        )
        node.prepare(
            self.place,
            one,
            image=image.SANDBOX,
            bin_dir=os.path.dirname(self.programs["bridge"]),
            kubelet_config=config,
        )
        assert self.network is not None  # noqa: S101 - nodes are only prepared with a network
        credentials.write_kubeconfig(
            self.place.node(one.name) / "kubelet.kubeconfig",
            credentials=self.plane.credentials,
            user=credentials.node_user(one.name),
            server=f"https://{self.network.host}:{self.plane.ports.api}",
        )

    def _start_kubelet(self, one: Node) -> Component:
        machine = self.state.component(f"machine/{one.name}")
        assert machine is not None  # noqa: S101 - _start_machines came before
        assert machine.process is not None  # noqa: S101 - as above
        return self._start(
            node.kubelet(
                self.place, one, bins=self.programs, holder=machine.process,
                feature_gates=self.request.options.feature_gates,
            )  # fmt: skip
        )


def load_image(found: State, one: Node, archive: str) -> None:
    """Put the images of an OCI archive into one node's containerd."""
    command = [found.bin["ctr"], "--address", one.containerd_socket, "--namespace", "k8s.io",
               "images", "import", "--no-unpack", archive]  # fmt: skip
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise ClusterError(f"node {one.name} did not take {archive}: {done.stderr.strip()}")


def change(name: str, part: str, action: Callable[[State, Component], Component]) -> None:
    """Do something to one component under the lock, and record what became of it."""
    with locked(name) as place:
        found = state.load(place)
        if found is None:
            raise ClusterError(f"there is no cluster {name}: hack/cluster up --name {name}")
        chosen = found.component(part)
        if chosen is None:
            known = ", ".join(one.name for one in found.components)
            raise ClusterError(f"cluster {name} has no component {part!r}; it has {known}")
        state.save(place, found.replace(action(found, chosen)))


def restart(found: State, part: Component) -> Component:
    """Stop a component, start it with the same arguments and wait until it is ready."""
    component.stop(part)
    started = component.start(found, dataclasses.replace(part, process=None))
    component.wait_ready(started, credentials.admin_token(layout(found.name)))
    return started
