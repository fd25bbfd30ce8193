"""How does a whole cluster come up and go away? Must not know arguments or file formats."""

import dataclasses
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from . import (
    api,
    binaries,
    cgroup,
    component,
    controlplane,
    credentials,
    image,
    lock,
    machines,
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
from .recorder import Recorder
from .state import Component, State


@dataclass(frozen=True)
class Request:
    """The cluster that a person asks for."""

    name: str
    kubernetes: str
    nodes: tuple[node.NodeSpec, ...]
    options: controlplane.Options


@contextmanager
def locked(name: str) -> Iterator[Layout]:
    """Let only one command change this cluster at a time."""
    place = layout(name)
    with lock.held(f"cluster-{name}"):
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
            return _bring_up(request, place, programs)
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
        raise ClusterError(f"processes of cluster {place.name} survive SIGKILL: see ps")
    network.remove_interface(place.name)
    if place.root.exists():
        shutil.rmtree(place.root)
    with suppress(OSError):  # other clusters, or none ever
        clusters().rmdir()


def _bring_up(request: Request, place: Layout, programs: dict[str, str]) -> State:
    """All steps: what takes long is started first and awaited last."""
    place.logs.mkdir(parents=True)
    wires = network.choose_network(request.name, network.routes()) if request.nodes else None
    plane = _plan(request, place, programs=programs, wires=wires)
    recorder = Recorder(place, _describe(request, plane, wires))
    around = wires and machines.Surroundings(
        wires, plane.credentials, plane.ports.api, request.options.feature_gates
    )
    token = plane.credentials.tokens[credentials.ADMIN]
    with step("etcd, kube-apiserver" + (", containerd" if around else "")):
        component.wait_ready(recorder.start(controlplane.etcd(plane)), token)
        server = recorder.start(controlplane.api_server(plane))
        holders = machines.start_runtimes(recorder, around) if around else {}
        component.wait_ready(server, token)
    with step("kube-scheduler, kube-controller-manager" + (", kubelet" if around else "")):
        started = [recorder.start(controlplane.scheduler(plane)),
                   recorder.start(controlplane.controller_manager(plane))]  # fmt: skip
        started += machines.start_kubelets(recorder, around, holders) if around else []
        for part in started:
            component.wait_ready(part, token)
    with step("pods can be created" + (", nodes are ready" if around else "")):
        names = [one.name for one in recorder.state.nodes]
        authority = plane.credentials.file("ca.crt")
        api.wait_usable(plane.server, names, token=token, authority=authority)
    return recorder.state


def _plan(
    request: Request, place: Layout, *, programs: dict[str, str], wires: Network | None
) -> ControlPlane:
    """Choose ports, make credentials and the control group of the control plane."""
    group = ""
    if request.nodes or cgroup.usable():
        cgroup.create(place.name, "control")
        group = str(cgroup.procs_file(place.name, "control"))
    names = [spec.name for spec in request.nodes]
    plane = ControlPlane(
        layout=place,
        bin=programs,
        ports=controlplane.Ports(*ports.choose_ports(request.name, 5, ports.is_free)),
        credentials=credentials.make(place, hosts=[wires.host] if wires else [], nodes=names),
        options=request.options,
        host=wires.host if wires else None,
        group=group,
    )
    controlplane.write_files(plane)
    return plane


def _describe(request: Request, plane: ControlPlane, wires: Network | None) -> State:
    return State(
        name=request.name,
        kubernetes=request.kubernetes,
        root=str(plane.layout.root),
        kubeconfig=str(plane.layout.kubeconfig),
        server=plane.server,
        etcd=plane.etcd_url,
        image=image.TEST,
        network=wires.index if wires else None,
        bin=plane.bin,
        nodes=node.describe(plane.layout, request.nodes, network=wires) if wires else (),
    )


def known(place: Layout) -> State:
    """The recorded state of a cluster that exists."""
    found = state.load(place)
    if found is None:
        raise ClusterError(f"there is no cluster {place.name}: hack/cluster up --name {place.name}")
    return found


def component_of(found: State, name: str) -> Component:
    """The component with this name; refuses an unknown one with the list of all."""
    chosen = found.component(name)
    if chosen is None:
        names = ", ".join(part.name for part in found.components)
        raise ClusterError(f"cluster {found.name} has no component {name!r}; it has {names}")
    return chosen


def change(name: str, part: str, action: Callable[[State, Component], Component]) -> None:
    """Do something to one component under the lock, and record what became of it."""
    with locked(name) as place:
        found = known(place)
        state.save(place, found.replace(action(found, component_of(found, part))))


def restart(found: State, part: Component) -> Component:
    """Stop a component, start it with the same arguments and wait until it is ready."""
    _refuse_homeless(found, part)
    component.stop(part)
    started = component.start(found, dataclasses.replace(part, process=None))
    component.wait_ready(started, credentials.admin_token(layout(found.name)))
    return started


def _refuse_homeless(found: State, part: Component) -> None:
    """A node's programs need its namespaces, and those cannot be made a second time."""
    holder = found.component(f"machine/{part.name.partition('/')[2]}")
    if part.name == "switch" or part == holder or (holder and not process.alive(holder.process)):
        raise ClusterError(
            f"{part.name} cannot be restarted: the namespaces that it needs go with the process "
            f"that holds them; run hack/cluster up --name {found.name} again"
        )
