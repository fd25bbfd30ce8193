"""Which nodes a node selector means, and whether a published device is reachable from a node.

Source of the rules: `k8s.io/component-helpers/scheduling/corev1/nodeaffinity`. Knows nothing of
pools or claims.
"""

import re
from collections.abc import Mapping

from driver.model.api import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from driver.model.core import Node
from driver.model.errors import AllocationError

_INTEGER = re.compile(r"[+-]?[0-9]+")


def selects(selector: NodeSelector, node: Node) -> bool:
    """Whether one of the selector's terms holds for the node; an empty term holds for none.

    Raises `AllocationError` for an operator that this release does not know.
    """
    return any(_term(term, node) for term in selector.node_selector_terms)


def reaches(
    node: Node, *, node_name: str | None, all_nodes: bool | None, selector: NodeSelector | None
) -> bool:
    """Whether what is published with these three fields can be used on the node."""
    if node_name:
        return node.metadata.name == node_name
    if all_nodes:
        return True
    return selector is not None and selects(selector, node)


def _term(term: NodeSelectorTerm, node: Node) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": node.metadata.name}
    return all(_holds(one, node.metadata.labels) for one in term.match_expressions) and all(
        _holds(one, fields) for one in term.match_fields
    )


def _holds(requirement: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(requirement, value)
    raise AllocationError(
        f"node selector requirement on {requirement.key!r} has operator "
        f"{requirement.operator!r}: expected In, NotIn, Exists, DoesNotExist, Gt or Lt"
    )


def _compares(requirement: NodeSelectorRequirement, value: str | None) -> bool:
    """Whether both are whole numbers and in that order; anything else does not hold."""
    if value is None or len(requirement.values) != 1:
        return False
    bound = requirement.values[0]
    if not (_INTEGER.fullmatch(value) and _INTEGER.fullmatch(bound)):
        return False
    if requirement.operator == "Gt":
        return int(value) > int(bound)
    return int(value) < int(bound)
