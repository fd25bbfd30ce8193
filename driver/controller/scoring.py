"""The policies by name, told which requests are usual here.

One policy object serves all decisions until the mix changes, because it remembers much of what it
has worked out.
"""

from driver.controller.demand import Demand
from driver.policy.registry import NodeScorer, Objective, Registry
from driver.policy.weights import Weights

# Users name policies as they like: forget those of long ago.
_MOST = 64


class Scoring:
    """Gives the policies of both axes; raises `PolicyError` for an unknown one."""

    def __init__(self, registry: Registry, demand: Demand) -> None:
        self._registry = registry
        self._demand = demand
        self._version = demand.version
        self._objectives: dict[tuple[str, Weights | None], Objective | None] = {}
        self._scorers: dict[tuple[str, Weights | None], NodeScorer | None] = {}

    def objective(self, names: str, weights: Weights | None) -> Objective | None:
        """The policy of the GPU axis; None for "none"."""
        self._renew()
        key = names, weights
        if key not in self._objectives:
            made = self._registry.objective(names, weights=weights, mix=self._demand.mix)
            self._objectives[key] = made
        return self._objectives[key]

    def node_scorer(self, names: str, weights: Weights | None) -> NodeScorer | None:
        """The policy of the node axis; None for "none"."""
        self._renew()
        key = names, weights
        if key not in self._scorers:
            made = self._registry.node_scorer(names, weights=weights, mix=self._demand.mix)
            self._scorers[key] = made
        return self._scorers[key]

    def version(self, *names: str) -> int:
        """Another one when policies of these names may have come to score otherwise."""
        heeded = any(self._registry.heeds_mix(one) for one in names)
        return self._demand.version if heeded else 0

    def _renew(self) -> None:
        if self._version != self._demand.version or len(self._objectives) > _MOST:
            self._objectives.clear()
        if self._version != self._demand.version or len(self._scorers) > _MOST:
            self._scorers.clear()
        self._version = self._demand.version
