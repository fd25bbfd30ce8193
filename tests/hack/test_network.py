"""Which addresses does a cluster get?"""

import ipaddress
import itertools

import pytest

from hack.kubernetes.errors import ClusterError
from hack.kubernetes.network import NETWORKS, Network, choose_network


def test_a_name_gets_the_same_network_again() -> None:
    """Addresses that stay make logs comparable."""
    assert choose_network("dev", []) == choose_network("dev", [])


@pytest.mark.parametrize("part", ["subnet", "all_pods"])
def test_a_network_that_the_host_routes_is_passed_over(part: str) -> None:
    """Neither nodes nor pods may take addresses that lead elsewhere."""
    first = choose_network("dev", [])
    assert choose_network("dev", ["192.0.2.0/24", getattr(first, part)]) != first


def test_a_wide_route_over_everything_is_told() -> None:
    """A machine in 10.0.0.0/8 has to hear why there is no cluster."""
    with pytest.raises(ClusterError, match="no network is free"):
        choose_network("dev", ["10.0.0.0/8"])


def test_no_two_networks_overlap() -> None:
    """Clusters side by side never share an address."""
    networks = [Network(index) for index in range(NETWORKS)]
    ranges = sorted(
        ipaddress.IPv4Network(net) for one in networks for net in (one.subnet, one.all_pods)
    )
    for before, after in itertools.pairwise(ranges):
        assert before.broadcast_address < after.network_address


def test_addresses_of_nodes_lie_in_their_networks() -> None:
    """Each node has an address beside the host's, and pods of its own."""
    network = Network(7)
    nodes = ipaddress.IPv4Network(network.subnet)
    assert all(ipaddress.IPv4Address(network.node(n)) in nodes for n in (0, 99))
    assert network.node(0) != network.host
    pods = ipaddress.IPv4Network(network.pods(3))
    assert pods.subnet_of(ipaddress.IPv4Network(network.all_pods))
