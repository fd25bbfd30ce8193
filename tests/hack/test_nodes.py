"""Which nodes does a command line ask for, and which are refused?"""

import pytest

from hack.kubernetes.errors import ClusterError
from hack.kubernetes.layout import check_name
from hack.kubernetes.node import NodeSpec, parse_nodes


def test_nodes_keep_their_order_and_may_have_no_gpus() -> None:
    """The first node gets the first address, so order is part of the contract."""
    assert parse_nodes("t4=4xT4, a10g=4xA10G,plain") == (
        NodeSpec("t4", "4xT4"),
        NodeSpec("a10g", "4xA10G"),
        NodeSpec("plain", ""),
    )


def test_model_names_with_dashes_are_taken() -> None:
    """Real products are called A100-SXM4-40GB."""
    assert parse_nodes("n=8xA100-SXM4-40GB")[0].gpus == "8xA100-SXM4-40GB"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "T4=4xT4",
        "t4=",
        "t4=0xT4",
        "t4=4",
        "t4=xT4",
        "t4=4xT4,,a10g=4xA10G",
        "t4=4xT4,t4=1xT4",
        "control=1xT4",
        "logs",
        "-t4=4xT4",
        "a-name-of-16-chr=1xT4",
    ],
)
def test_what_is_no_node_is_refused(text: str) -> None:
    """A typing error must not become a node with an odd name."""
    with pytest.raises(ClusterError, match="--nodes"):
        parse_nodes(text)


@pytest.mark.parametrize("name", ["dev", "a", "t-4", "a234567890123-5"])
def test_short_names_are_taken(name: str) -> None:
    """Names of up to 15 characters leave room for socket paths."""
    assert check_name("cluster", name) == name


@pytest.mark.parametrize("name", ["", "Dev", "4t", "dev-", "../x", "a2345678901234-6", "a\n"])
def test_other_names_are_refused(name: str) -> None:
    """A name becomes part of paths, interfaces and control groups."""
    with pytest.raises(ClusterError, match="is not usable"):
        check_name("cluster", name)
