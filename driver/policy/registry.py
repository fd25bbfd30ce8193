"""Which policies there are, by the names that users give them.

A name may be several, joined by commas: the first decides, later ones break its ties.
"""

from collections.abc import Callable, Mapping

import msgspec

from driver.model.errors import QuadrantError
from driver.policy.compact import CompactDevices, CompactNodes
from driver.policy.fragmentation import Fragmentation
from driver.policy.hami import Hami
from driver.policy.mix import Mix
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


class Options(msgspec.Struct, frozen=True):
    """What policies can be told: how things weigh, and which requests are usual."""

    weights: Weights | None = None
    mix: Mix | None = None


_Make = Callable[[Options], Scorer]

_GPU: Mapping[str, _Make] = {
    "compact": lambda options: CompactDevices(options.weights),
    "spread": lambda options: SpreadDevices(options.weights),
    "topology": lambda _: Topology(),
    "fragmentation": lambda options: Fragmentation(options.mix),
    "hami": lambda options: Hami(options.weights, sign=1, node=False),
    "hami-spread": lambda options: Hami(options.weights, sign=-1, node=False),
}
_NODE: Mapping[str, _Make] = {
    **_GPU,
    "compact": lambda options: CompactNodes(options.weights),
    "spread": lambda options: SpreadNodes(options.weights),
    "hami": lambda options: Hami(options.weights, sign=1, node=True),
    "hami-spread": lambda options: Hami(options.weights, sign=-1, node=True),
}
KNOWN = (*_GPU, NONE)


class PolicyError(QuadrantError):
    """A policy that is not known; the text lists those that are."""


def objective(
    names: str, *, weights: Weights | None = None, mix: Mix | None = None
) -> Objective | None:
    """The policy of the GPU axis; None for "none": the scheduler's own choice stands."""
    return _policy(names, Options(weights, mix), "GPU", _GPU)


def node_scorer(
    names: str, *, weights: Weights | None = None, mix: Mix | None = None
) -> NodeScorer | None:
    """The policy of the node axis; None for "none": no node is nominated."""
    return _policy(names, Options(weights, mix), "node", _NODE)


def _policy(names: str, options: Options, axis: str, known: Mapping[str, _Make]) -> Policy | None:
    parts = [part.strip() for part in names.split(",")]
    if parts == [NONE]:
        return None
    made = [known.get(ALIASES.get(part, part)) for part in parts]
    scorers = tuple(make(options) for make in made if make is not None)
    if len(scorers) != len(parts):
        wrong = next(part for part, make in zip(parts, made, strict=True) if make is None)
        raise PolicyError(
            f"{axis} policy {wrong!r} is not known: expected {', '.join(known)} (binpack means "
            f"compact), several of them joined by commas, or {NONE} alone"
        )
    return Policy(names, scorers)
