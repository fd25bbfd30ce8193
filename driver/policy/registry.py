"""Which policies there are, by the names that users give them.

A name may be several, joined by commas: the first decides, later ones break its ties.
"""

from collections.abc import Callable, Mapping

from driver.model.errors import QuadrantError
from driver.policy.compact import CompactDevices, CompactNodes
from driver.policy.hami import Hami
from driver.policy.policy import Policy
from driver.policy.spread import SpreadDevices, SpreadNodes
from driver.policy.topology import Topology
from driver.policy.view import Scorer
from driver.policy.weights import Weights

# Both axes choose among scored possibilities; the names say which axis a policy is for.
Objective = Policy
NodeScorer = Policy

NONE = "none"
ALIASES = {"binpack": "compact", "hami-binpack": "hami"}

_GPU: Mapping[str, Callable[[Weights | None], Scorer]] = {
    "compact": CompactDevices,
    "spread": SpreadDevices,
    "topology": lambda _: Topology(),
    "hami": lambda weights: Hami(weights, sign=1, node=False),
    "hami-spread": lambda weights: Hami(weights, sign=-1, node=False),
}
_NODE: Mapping[str, Callable[[Weights | None], Scorer]] = {
    "compact": CompactNodes,
    "spread": SpreadNodes,
    "topology": lambda _: Topology(),
    "hami": lambda weights: Hami(weights, sign=1, node=True),
    "hami-spread": lambda weights: Hami(weights, sign=-1, node=True),
}
KNOWN = (*_GPU, NONE)


class PolicyError(QuadrantError):
    """A policy that is not known; the text lists those that are."""


def objective(names: str, *, weights: Weights | None = None) -> Objective | None:
    """The policy of the GPU axis; None for "none": the scheduler's own choice stands."""
    return _policy(names, weights, "GPU", _GPU)


def node_scorer(names: str, *, weights: Weights | None = None) -> NodeScorer | None:
    """The policy of the node axis; None for "none": no node is nominated."""
    return _policy(names, weights, "node", _NODE)


def _policy(
    names: str,
    weights: Weights | None,
    axis: str,
    known: Mapping[str, Callable[[Weights | None], Scorer]],
) -> Policy | None:
    parts = [part.strip() for part in names.split(",")]
    if parts == [NONE]:
        return None
    made = [known.get(ALIASES.get(part, part)) for part in parts]
    scorers = tuple(make(weights) for make in made if make is not None)
    if len(scorers) != len(parts):
        wrong = next(part for part, make in zip(parts, made, strict=True) if make is None)
        raise PolicyError(
            f"{axis} policy {wrong!r} is not known: expected {', '.join(known)} (binpack means "
            f"compact), several of them joined by commas, or {NONE} alone"
        )
    return Policy(names, scorers)
