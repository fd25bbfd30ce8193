"""In which order does a node come up? Must not know the control plane's arguments."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import component, credentials, image, network, node
from .credentials import Credentials
from .errors import ClusterError
from .layout import cache
from .network import Network
from .process import Identity
from .recorder import Recorder
from .state import Component, Node


@dataclass(frozen=True)
class Surroundings:
    """What the nodes of one cluster share."""

    network: Network
    credentials: Credentials
    api_port: int
    feature_gates: str


def start_runtimes(recorder: Recorder, around: Surroundings) -> dict[str, Identity]:
    """Namespaces, wires and containerd of every node, and the test image in each.

    Returns the process that holds each node's namespaces. Needs no API server yet.
    """
    bins, nodes = recorder.state.bin, recorder.state.nodes
    switch = recorder.hold(node.switch(recorder.place))
    network.build_switch(around.network, cluster=recorder.place.name, switch=switch)
    holders: dict[str, Identity] = {}
    runtimes: list[Component] = []
    for number, one in enumerate(nodes):
        _prepare(recorder, one, around)
        holder = holders[one.name] = recorder.hold(node.machine(recorder.place, one.name))
        network.shell(holder, node.machine_script(recorder.place, one))
        network.plug_node(around.network, switch=switch, node=holder, number=number)
        network.route_node(
            around.network, node=holder, number=number, nodes=len(nodes), api_port=around.api_port
        )
        part = node.containerd(recorder.place, one, bins=bins, holder=holder)
        runtimes.append(recorder.start(part))
    archive = image.archive(cache())
    for one, runtime in zip(nodes, runtimes, strict=True):
        component.wait_ready(runtime, "")
        _load_image(bins["ctr"], one, archive)
    return holders


def start_kubelets(
    recorder: Recorder, around: Surroundings, holders: dict[str, Identity]
) -> list[Component]:
    """The kubelet of every node; the API server has to answer by now."""
    return [
        recorder.start(
            node.kubelet(
                recorder.place,
                one,
                bins=recorder.state.bin,
                holder=holders[one.name],
                feature_gates=around.feature_gates,
            )
        )
        for one in recorder.state.nodes
    ]


def _prepare(recorder: Recorder, one: Node, around: Surroundings) -> None:
    place, bins = recorder.place, recorder.state.bin
    config = node.kubelet_config(
        cluster=place.name, node=one, authority=around.credentials.file("ca.crt")
    )
    plugins = str(Path(bins["bridge"]).parent)
    node.prepare(place, one, image=image.SANDBOX, bin_dir=plugins, kubelet_config=config)
    credentials.write_kubeconfig(
        place.node(one.name) / "kubelet.kubeconfig",
        credentials=around.credentials,
        user=credentials.node_user(one.name),
        server=f"https://{around.network.host}:{around.api_port}",
    )


def _load_image(ctr: str, one: Node, archive: Path) -> None:
    """Put the test image into a node; containerd unpacks it when the first pod needs it."""
    command = [ctr, "--address", one.containerd_socket, "--namespace", "k8s.io",
               "images", "import", "--no-unpack", str(archive)]  # fmt: skip
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise ClusterError(f"node {one.name} did not take {archive}: {done.stderr.strip()}")
