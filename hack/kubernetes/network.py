"""Which addresses does a cluster use, how are its nodes wired? Must not start what stays.

Each cluster has one virtual switch in a network namespace of its own. The host is plugged into it
with a single interface, each node with one. No rule is ever added to the host's packet filter, and
all of it goes away with the processes that hold the namespaces. ::

    host ── quad7 (10.89.7.1) ──┐
                              switch ── eth0 (10.89.7.10) node 0 ── cni0 (10.107.0.1) ── pods
                                └────── eth0 (10.89.7.11) node 1 ── cni0 (10.107.1.1) ── pods
"""

import ipaddress
import json
import shutil
import subprocess
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .errors import ClusterError
from .process import Identity

SERVICES = "10.96.0.0/16"
"""Service addresses; they are only ever seen inside a cluster."""

API_SERVICE = "10.96.0.1"
"""The address of the Service ``kubernetes``: the first one of the range."""

NETWORKS = 100
NODES = 100


@dataclass(frozen=True)
class Network:
    """The addresses of one cluster, all of which follow from one number below 100."""

    index: int

    @property
    def interface(self) -> str:
        """The host's interface."""
        return f"quad{self.index}"

    @property
    def subnet(self) -> str:
        """The host and the nodes."""
        return f"10.89.{self.index}.0/24"

    @property
    def host(self) -> str:
        """The host's address; the API server is reached here from nodes and pods."""
        return f"10.89.{self.index}.1"

    def node(self, number: int) -> str:
        """The address of a node."""
        return f"10.89.{self.index}.{10 + number}"

    def pods(self, number: int) -> str:
        """The pod subnet of a node."""
        return f"10.{100 + self.index}.{number}.0/24"

    @property
    def all_pods(self) -> str:
        """The pod subnets of all nodes."""
        return f"10.{100 + self.index}.0.0/16"


def choose_network(name: str, routes: Iterable[str]) -> Network:
    """A network that none of the host's routes overlaps, the same for a name where possible."""
    taken = [ipaddress.IPv4Network(route) for route in routes]
    first = zlib.crc32(name.encode()) % NETWORKS
    for offset in range(NETWORKS):
        network = Network((first + offset) % NETWORKS)
        wanted = [ipaddress.IPv4Network(net) for net in (network.subnet, network.all_pods)]
        if not any(net.overlaps(other) for net in wanted for other in taken):
            return network
    raise ClusterError(
        "no network is free: every one of 10.89.0.0/24 to 10.89.99.0/24, or its pod network "
        "10.100.0.0/16 to 10.199.0.0/16, overlaps a route of this machine; see `ip route`"
    )


def routes() -> list[str]:
    """Destinations of the host's IPv4 routes, the default route left out."""
    table = json.loads(_output(["ip", "-4", "-json", "route", "show"]))
    return [str(route["dst"]) for route in table if route["dst"] != "default"]


def inside(holder: Identity, command: Sequence[str]) -> list[str]:
    """The command that runs ``command`` in the namespaces of a node or of the switch."""
    return ["nsenter", "--target", str(holder.pid), "--net", "--mount", "--", *command]


def shell(holder: Identity, script: str) -> None:
    """Run a script of commands in the namespaces of ``holder``; the first failure ends it."""
    _output(inside(holder, ["/bin/sh", "-euc", script]))


def build_switch(network: Network, *, cluster: str, switch: Identity) -> None:
    """Plug the host into the switch, with an interface that carries the cluster's name."""
    name = network.interface
    _output(["ip", "link", "add", name, "type", "veth", "peer", "name", "host", "netns",
             str(switch.pid)])  # fmt: skip
    _output(["ip", "address", "add", f"{network.host}/24", "dev", name])
    _output(["ip", "link", "set", name, "alias", _alias(cluster), "up"])
    shell(
        switch,
        "ip link add switch type bridge\n"
        "ip link set switch up\n"
        "ip link set host master switch up\n",
    )


def plug_node(network: Network, *, switch: Identity, node: Identity, number: int) -> None:
    """Plug a node into the switch and tell the host the way to its pods."""
    port = f"node{number}"
    shell(
        switch,
        f"ip link add {port} type veth peer name eth0 netns {node.pid}\n"
        f"ip link set {port} master switch up\n",
    )
    shell(
        node,
        "ip link set lo up\n"
        f"ip address add {network.node(number)}/24 dev eth0\n"
        "ip link set eth0 up\n"
        "echo 1 >/proc/sys/net/ipv4/ip_forward\n",
    )
    _output(["ip", "route", "add", network.pods(number), "via", network.node(number), "dev",
             network.interface])  # fmt: skip


def route_node(network: Network, *, node: Identity, number: int, nodes: int, api_port: int) -> None:
    """Tell a node the way to the other nodes' pods and to the Service ``kubernetes``."""
    lines = [
        f"ip route add {network.pods(other)} via {network.node(other)} dev eth0"
        for other in range(nodes)
        if other != number
    ]
    lines += [
        f"iptables -t nat -A {chain} -d {API_SERVICE} -p tcp --dport 443 "
        f"-j DNAT --to-destination {network.host}:{api_port}"
        for chain in ("PREROUTING", "OUTPUT")
    ]
    # Without any route to it, a packet of the node's own would not get as far as OUTPUT. Other
    # Services stay unreachable on purpose: there is no kube-proxy, and failing at once is best.
    lines.append(f"ip route add {API_SERVICE} via {network.host} dev eth0")
    shell(node, "\n".join(lines))


def remove_interface(cluster: str) -> None:
    """Remove the cluster's interface on the host, and with it its routes; none there is fine.

    It is found by the name that it carries, not by its number: another cluster may have taken that
    after a crash of this one.
    """
    if not shutil.which("ip"):
        return  # then there never was one
    for link in json.loads(_output(["ip", "-json", "link", "show"])):
        if link.get("ifalias") == _alias(cluster):
            # It may go by itself at this moment, with the last process in the switch's namespace.
            command = ["ip", "link", "delete", link["ifname"]]
            subprocess.run(command, check=False, capture_output=True)


def _alias(cluster: str) -> str:
    return f"quadrant-{cluster}"


def _output(command: Sequence[str]) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise ClusterError(
            f"`{' '.join(command)}` failed with status {done.returncode}: {done.stderr.strip()}"
        )
    return done.stdout
