"""Which ports does a cluster get?"""

import socket

import pytest

from hack.kubernetes.errors import ClusterError
from hack.kubernetes.ports import FIRST, LAST, choose_ports, is_free


def test_a_name_gets_the_same_ports_again() -> None:
    """Ports that stay make logs and histories comparable."""
    assert choose_ports("dev", 5, lambda _: True) == choose_ports("dev", 5, lambda _: True)


def test_two_names_begin_at_different_places() -> None:
    """Two clusters that start together must not try the same ports."""
    one, two = (choose_ports(name, 5, lambda _: True) for name in ("one", "two"))
    assert not set(one) & set(two)


def test_taken_ports_are_passed_over() -> None:
    """Only what is free is chosen, whatever the name says."""
    first = choose_ports("dev", 3, lambda _: True)
    second = choose_ports("dev", 3, lambda port: port not in first)
    assert not set(first) & set(second)
    assert all(FIRST <= port <= LAST for port in second)


def test_the_search_goes_round_the_end_of_the_range() -> None:
    """A free port at the very beginning is found from anywhere."""
    assert choose_ports("dev", 1, lambda port: port == FIRST) == [FIRST]


def test_too_few_free_ports_are_told() -> None:
    """A person has to know how many were found, and where."""
    with pytest.raises(ClusterError, match=f"only 1 of 2 ports are free between {FIRST}"):
        choose_ports("dev", 2, lambda port: port == LAST)


def test_a_listening_port_is_not_free() -> None:
    """The probe sees a server on one address, because ours listen on all."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not is_free(server.getsockname()[1])
