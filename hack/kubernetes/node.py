"""What is a node made of? Must not know the control plane's arguments.

A node is a pair of namespaces, network and mount, held by one idle process. In them run a
containerd and a kubelet with the paths that they have on a real machine (``/var/lib/kubelet``,
``/run/cdi``, ``/var/log/pods``): what is installed into the cluster finds what it expects. The
same folders are visible outside at the paths of ``state.Node``; unix sockets in them work from
both sides, because they are plain files of the same file system.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import cgroup
from .errors import ClusterError
from .layout import NAME, RESERVED, Layout
from .network import Network, inside
from .process import Identity
from .snapshots import snapshotter
from .state import Component, Node, log_of

_GPUS = re.compile(r"[1-9][0-9]*x[A-Za-z0-9][A-Za-z0-9.-]*")


@dataclass(frozen=True)
class NodeSpec:
    """One node as asked for on the command line."""

    name: str
    gpus: str


def parse_nodes(text: str) -> tuple[NodeSpec, ...]:
    """Nodes from ``t4=4xT4,a10g=4xA10G``; ``=GPUS`` may be left out."""
    specs = tuple(_parse_node(part.strip()) for part in text.split(","))
    names = [spec.name for spec in specs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ClusterError(f"--nodes names {', '.join(twice)} more than once: each node once")
    return specs


def _parse_node(text: str) -> NodeSpec:
    name, equals, gpus = text.partition("=")
    known = NAME.fullmatch(name) and name not in RESERVED
    if not known or (equals and not _GPUS.fullmatch(gpus)):
        raise ClusterError(
            f"--nodes has {text!r}: expected NAME=COUNTxMODEL such as t4=4xT4, or NAME alone; "
            "a name is 1 to 15 of a-z, 0-9 and '-', begins with a letter "
            f"and is none of {', '.join(sorted(RESERVED))}"
        )
    return NodeSpec(name, gpus)


def describe(layout: Layout, specs: Sequence[NodeSpec], *, network: Network) -> tuple[Node, ...]:
    """The records of all nodes; their order decides their addresses."""
    return tuple(
        Node(
            name=spec.name,
            gpus=spec.gpus,
            address=network.node(number),
            pod_subnet=network.pods(number),
            kubelet_dir=str(layout.node(spec.name) / "kubelet"),
            plugins_dir=str(layout.node(spec.name) / "kubelet" / "plugins"),
            registry_dir=str(layout.node(spec.name) / "kubelet" / "plugins_registry"),
            cdi_dir=str(layout.node(spec.name) / "cdi"),
            containerd_socket=str(layout.node(spec.name) / "containerd.sock"),
        )
        for number, spec in enumerate(specs)
    )


def prepare(layout: Layout, node: Node, *, image: str, bin_dir: str, kubelet_config: str) -> None:
    """Make the node's folders, configuration files and control groups."""
    root = layout.node(node.name)
    for folder in (node.plugins_dir, node.registry_dir, node.cdi_dir, root / "log", root / "cni"):
        Path(folder).mkdir(parents=True)
    files = {
        root / "containerd.toml": _containerd_config(node, root=root, image=image, bins=bin_dir),
        root / "cni" / "10-bridge.conflist": _cni_config(node),
        root / "kubelet.json": kubelet_config,
    }
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    cgroup.create(layout.name, f"{node.name}/runtime")


def machine_script(layout: Layout, node: Node) -> str:
    """The commands that give a node its own /run, /var/lib and /var/log.

    Mounts are shared from / on, as kubelet asks for, but with nothing outside of the node.
    """
    return "\n".join(
        (
            "mount --make-rshared /",
            "mount -t tmpfs -o mode=755 tmpfs /run",
            "mount -t tmpfs -o mode=755 tmpfs /var/lib",
            "mkdir -p /run/lock /run/cdi /var/lib/kubelet",
            f"mount --bind {node.kubelet_dir} /var/lib/kubelet",
            f"mount --bind {node.cdi_dir} /run/cdi",
            f"mount --bind {layout.node(node.name) / 'log'} /var/log",
        )
    )


def machine(layout: Layout, node: str) -> Component:
    """The idle process that holds a node's namespaces."""
    return _holder(layout, f"machine/{node}", leaf=f"{node}/runtime")


def switch(layout: Layout) -> Component:
    """The idle process that holds the namespace of the nodes' switch."""
    return _holder(layout, "switch", leaf="control")


def _holder(layout: Layout, name: str, *, leaf: str) -> Component:
    return Component(
        name=name,
        argv=("unshare", "--net", "--mount", "--propagation", "private", "sleep", "infinity"),
        log=str(log_of(layout, name)),
        group=str(cgroup.procs_file(layout.name, leaf)),
        health="",
    )


def containerd(layout: Layout, node: Node, *, bins: dict[str, str], holder: Identity) -> Component:
    """The node's containerd."""
    config = layout.node(node.name) / "containerd.toml"
    return _component(
        layout,
        node,
        "containerd",
        inside(holder, [bins["containerd"], "--config", str(config)]),
        health=node.containerd_socket,
    )


def kubelet(
    layout: Layout, node: Node, *, bins: dict[str, str], holder: Identity, feature_gates: str
) -> Component:
    """The node's kubelet."""
    root = layout.node(node.name)
    command = [
        bins["kubelet"],
        f"--config={root / 'kubelet.json'}",
        f"--kubeconfig={root / 'kubelet.kubeconfig'}",
        f"--hostname-override={node.name}",
        f"--node-ip={node.address}",
    ]
    if feature_gates:
        command.append(f"--feature-gates={feature_gates}")
    health = f"http://{node.address}:10248/healthz"
    return _component(layout, node, "kubelet", inside(holder, command), health=health)


def _component(
    layout: Layout, node: Node, program: str, argv: list[str], *, health: str
) -> Component:
    name = f"{program}/{node.name}"
    return Component(
        name=name,
        argv=tuple(argv),
        log=str(log_of(layout, name)),
        group=str(cgroup.procs_file(layout.name, f"{node.name}/runtime")),
        health=health,
    )


def kubelet_config(*, cluster: str, node: Node, authority: str) -> str:
    """The kubelet's configuration, as JSON.

    ``failCgroupV1`` is needed on version 1 from Kubernetes 1.36 on. Garbage collection of images is
    off: they could not be pulled again. Health is answered on the node's address, for the host.
    ``syncFrequency`` is how soon a pod whose claims could not be prepared is tried again; the
    kubelet's own minute would be most of a test's time.
    """
    return json.dumps(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": f"unix://{node.containerd_socket}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": cgroup.node_root(cluster, node.name),
            "failCgroupV1": False,
            "failSwapOn": False,
            "syncFrequency": "3s",
            "enforceNodeAllocatable": [],
            "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%"},
            "imageGCHighThresholdPercent": 100,
            "healthzBindAddress": node.address,
            "resolvConf": "",
            "volumePluginDir": "/var/lib/kubelet/volume-plugins",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": authority},
            },
            "authorization": {"mode": "Webhook"},
        },
        indent=2,
    )


def _containerd_config(node: Node, *, root: Path, image: str, bins: str) -> str:
    """The configuration of containerd.

    OOM scores are kept at what root may set without CAP_SYS_RESOURCE, which sandboxes and CI
    machines often withhold.
    """
    return f"""\
version = 3
root = "{root}/containerd"
state = "/run/containerd"

[grpc]
  address = "{node.containerd_socket}"

[plugins.'io.containerd.cri.v1.images']
  snapshotter = "{snapshotter(root)}"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "{image}"

[plugins.'io.containerd.cri.v1.runtime']
  enable_cdi = true
  restrict_oom_score_adj = true
  cdi_spec_dirs = ["/etc/cdi", "/run/cdi"]
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["{bins}"]
    conf_dir = "{root}/cni"
  [plugins.'io.containerd.cri.v1.runtime'.containerd]
    default_runtime_name = "runc"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
        BinaryName = "runc"
        SystemdCgroup = false
"""


def _cni_config(node: Node) -> str:
    return json.dumps(
        {
            "cniVersion": "1.0.0",
            "name": "pods",
            "plugins": [
                {
                    "type": "bridge",
                    "bridge": "cni0",
                    "isGateway": True,
                    "hairpinMode": True,
                    "ipam": {
                        "type": "host-local",
                        "ranges": [[{"subnet": node.pod_subnet}]],
                        "routes": [{"dst": "0.0.0.0/0"}],
                    },
                }
            ],
        },
        indent=2,
    )
