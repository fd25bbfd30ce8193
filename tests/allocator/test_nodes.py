"""Which nodes a selector means."""

import pytest

from driver.allocator.nodes import reaches, selects
from driver.model.api import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from driver.model.errors import AllocationError
from tests.allocator.build import node


def _selector(key: str, operator: str, *values: str) -> NodeSelector:
    one = NodeSelectorRequirement(key=key, operator=operator, values=values)
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(one,)),))


@pytest.mark.parametrize(
    ("key", "operator", "values", "selected"),
    [
        ("zone", "In", ("a", "b"), True),
        ("zone", "In", ("b",), False),
        ("rack", "In", ("a",), False),
        ("zone", "NotIn", ("b",), True),
        ("zone", "NotIn", ("a",), False),
        ("rack", "NotIn", ("a",), True),
        ("zone", "Exists", (), True),
        ("rack", "Exists", (), False),
        ("zone", "DoesNotExist", (), False),
        ("rack", "DoesNotExist", (), True),
        ("gpus", "Gt", ("3",), True),
        ("gpus", "Gt", ("4",), False),
        ("gpus", "Lt", ("5",), True),
        ("gpus", "Lt", ("4",), False),
        ("zone", "Gt", ("3",), False),
        ("rack", "Lt", ("3",), False),
        ("gpus", "Gt", (), False),
    ],
)
def test_operators(key: str, operator: str, values: tuple[str, ...], *, selected: bool) -> None:
    """The meaning is that of Kubernetes' node affinity."""
    assert selects(_selector(key, operator, *values), node(zone="a", gpus="4")) is selected


def test_an_operator_of_the_future_is_no_silent_match() -> None:
    """Neither yes nor no would be right."""
    with pytest.raises(AllocationError, match="'Near'"):
        selects(_selector("zone", "Near", "a"), node(zone="a"))


def test_terms_are_alternatives_and_an_empty_one_means_nothing() -> None:
    """One term that holds is enough."""
    by_name = NodeSelectorRequirement(key="metadata.name", operator="In", values=("node-1",))
    empty, this = NodeSelectorTerm(), NodeSelectorTerm(match_fields=(by_name,))
    assert not selects(NodeSelector(node_selector_terms=(empty,)), node())
    assert selects(NodeSelector(node_selector_terms=(empty, this)), node())
    assert not selects(NodeSelector(node_selector_terms=(empty, this)), node("other"))


def test_a_name_goes_before_all_nodes_and_selectors() -> None:
    """Nothing published is reachable from nowhere."""
    assert reaches(node(), node_name="node-1", all_nodes=None, selector=None)
    assert not reaches(node(), node_name="other", all_nodes=True, selector=None)
    assert reaches(node(), node_name=None, all_nodes=True, selector=None)
    assert not reaches(node(), node_name=None, all_nodes=None, selector=None)
