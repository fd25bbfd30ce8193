"""Which policies there are, by the names that users give them.

A name may be several, joined by commas: the first decides, later ones break its ties. Scorers of
others are added by who starts the program; this module does not know where they come from.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec

from driver.model.errors import QuadrantError
from driver.policy.compact import CompactDevices, CompactNodes
from driver.policy.foreign import Foreign
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


Make = Callable[[Options], Scorer]

_GPU: Mapping[str, Make] = {
    "compact": lambda options: CompactDevices(options.weights),
    "spread": lambda options: SpreadDevices(options.weights),
    "topology": lambda _: Topology(),
    "fragmentation": lambda options: Fragmentation(options.mix),
    "hami": lambda options: Hami(options.weights, sign=1, node=False),
    "hami-spread": lambda options: Hami(options.weights, sign=-1, node=False),
}
_NODE: Mapping[str, Make] = {
    **_GPU,
    "compact": lambda options: CompactNodes(options.weights),
    "spread": lambda options: SpreadNodes(options.weights),
    "hami": lambda options: Hami(options.weights, sign=1, node=True),
    "hami-spread": lambda options: Hami(options.weights, sign=-1, node=True),
}
KNOWN = (*_GPU, NONE)
# Policies that score the same whatever requests are usual; of those of others it is not known.
_HEEDLESS = {*KNOWN} - {"fragmentation"}
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)


class PolicyError(QuadrantError):
    """A policy that is not known, or cannot be added; the text says what was expected."""


class Registry:
    """The policies of both axes: those of this package, and `added` ones by name.

    An added one serves both axes. Raises `PolicyError` for a name that is taken or cannot be one.
    """

    def __init__(self, added: Mapping[str, Make] = MappingProxyType({})) -> None:
        for name in added:
            _check_name(name)
        foreign = {name: _guarded(name, make) for name, make in added.items()}
        self._gpu: Mapping[str, Make] = {**_GPU, **foreign}
        self._node: Mapping[str, Make] = {**_NODE, **foreign}

    def objective(
        self, names: str, *, weights: Weights | None = None, mix: Mix | None = None
    ) -> Objective | None:
        """The policy of the GPU axis; None for "none": the scheduler's own choice stands."""
        return _policy(names, Options(weights, mix), "GPU", self._gpu)

    def node_scorer(
        self, names: str, *, weights: Weights | None = None, mix: Mix | None = None
    ) -> NodeScorer | None:
        """The policy of the node axis; None for "none": no node is nominated."""
        return _policy(names, Options(weights, mix), "node", self._node)

    def heeds_mix(self, names: str) -> bool:
        """Whether it may matter to this policy which requests are usual."""
        parts = (part.strip() for part in names.split(","))
        return any(ALIASES.get(part, part) not in _HEEDLESS for part in parts)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise PolicyError(
            f"policy {name!r} cannot be added: a name has lower case letters, digits and '-', "
            "at most 63 of them"
        )
    if name in _GPU or name in ALIASES or name == NONE:
        raise PolicyError(
            f"policy {name!r} cannot be added: Quadrant itself has one of that name; give the "
            "scorer another"
        )


def _guarded(name: str, make: Make) -> Make:
    return lambda options: Foreign(name, make(options))


def _policy(names: str, options: Options, axis: str, known: Mapping[str, Make]) -> Policy | None:
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


BUILT_IN = Registry()
objective = BUILT_IN.objective
node_scorer = BUILT_IN.node_scorer
