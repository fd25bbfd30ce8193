"""What is scarce among the machines of a trace, and its prices as they fill."""

from collections import Counter
from collections.abc import Iterable, Sequence

from driver.policy.fragmentation import PERCENT
from driver.policy.fragmentation_scarcity import Amounts, Scarcity, Thing
from driver.policy.fragmentation_wants import wants
from driver.policy.mix import Mix
from driver.simulator.trace.fleet import Prices
from driver.simulator.trace.placer import device
from driver.simulator.trace.state import CardUse, State
from driver.simulator.trace.tasks import Machine


class Pricing:
    """For machines that are asked for by this mix; a model stands for its make."""

    def __init__(self, mix: Mix, machines: Sequence[Machine]) -> None:
        models = dict.fromkeys(machine.model for machine in machines if machine.cards)
        self._scarcity = Scarcity(
            {model: wants(mix, device(model, 0, CardUse(0, 0))) for model in models}
        )

    def taken(self, before: State, after: State) -> Amounts:
        """What is taken from between two states of a machine."""
        if not before.cards:
            return ()
        return self._scarcity.taken(before.machine.model, before.room(), after.room())

    def prices(self, states: Iterable[tuple[State, int]]) -> Prices:
        """In points of the policy's score; the states come with how many machines are in them."""
        supply: Counter[Thing] = Counter()
        for state, number in states:
            if state.cards:
                for thing, amount in self._scarcity.things(
                    state.machine.model, state.room()
                ).items():
                    supply[thing] += number * amount
        prices = self._scarcity.prices(supply)
        return {thing: PERCENT * price for thing, price in prices.items()}
