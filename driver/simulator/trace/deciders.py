"""How a place is found for each task: by a policy, in order, by lot, as kube-scheduler would."""

from collections.abc import Sequence

from driver.policy.fragmentation import Fragmentation
from driver.policy.mix import Mix
from driver.policy.registry import Registry
from driver.simulator.trace.fleet import Fleet, Place, Prices
from driver.simulator.trace.placer import Placer, PolicyPlacer, StockPlacer
from driver.simulator.trace.play import Decide
from driver.simulator.trace.pricing import Pricing
from driver.simulator.trace.tasks import Ask, Draw, Machine

# Prices follow what is left; after so many decisions it has changed a little.
_PRICED_EVERY = 20


def in_order() -> Decide:
    """The first machine and the first cards that hold the task."""
    placer = PolicyPlacer(None, None)
    return lambda fleet, ask: fleet.best(ask, placer)


def by_lot(draw: Draw) -> Decide:
    """A machine drawn from those that hold the task, the first cards of it."""
    placer = PolicyPlacer(None, None)
    return lambda fleet, ask: fleet.any(ask, placer, draw)


def by_policy(
    node: str, gpu: str, *, mix: Mix, machines: Sequence[Machine], registry: Registry
) -> Decide:
    """As the two policies of these names say; raises `PolicyError`."""
    scorer = registry.node_scorer(node, mix=mix)
    objective = registry.objective(gpu, mix=mix)
    if scorer is not None and isinstance(scorer.scorers[0], Fragmentation):
        pricing = Pricing(mix, machines)
        return _Priced(PolicyPlacer(scorer, objective, pricing.taken), pricing)
    # Of our own policies only `fragmentation` looks at CPU; of those of others it is not known.
    by_cards = not (registry.heeds_mix(node) or registry.heeds_mix(gpu))
    placer = PolicyPlacer(scorer, objective, by_cards=by_cards)
    return lambda fleet, ask: fleet.best(ask, placer)


def with_stock_scheduler(decide: Decide) -> Decide:
    """The same for tasks with cards; the others go where kube-scheduler's scores put them."""
    stock = StockPlacer()

    def either(fleet: Fleet, ask: Ask) -> Place | None:
        return decide(fleet, ask) if ask.cards else fleet.best(ask, stock)

    return either


class _Priced:
    """By a policy for which scarce things have prices."""

    def __init__(self, placer: Placer, pricing: Pricing) -> None:
        self._placer = placer
        self._pricing = pricing
        self._prices: Prices = {}
        self._decisions = 0

    def __call__(self, fleet: Fleet, ask: Ask) -> Place | None:
        if self._decisions % _PRICED_EVERY == 0:
            self._prices = self._pricing.prices(fleet.states())
        self._decisions += 1
        return fleet.best(ask, self._placer, self._prices)
