"""Which cards of a machine a task gets, and how good the machine is for it, by a policy.

The policies are those of a real cluster; here they meet machines of a trace.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from driver.model.ids import DeviceId
from driver.model.names import DRIVER
from driver.policy.fragmentation_scarcity import Amounts
from driver.policy.registry import NodeScorer, Objective
from driver.policy.view import Choice, DeviceView, NodeView, Taken
from driver.simulator.trace.state import CardUse, State, card_sets
from driver.simulator.trace.tasks import WHOLE_CARD, Ask, Machine, amounts

# Twice as many as machines are usually in.
_MOST_VIEWS = 4096
_MOST_OPTIONS = 200_000


class Option(NamedTuple):
    """The best cards of a machine; the smaller `order`, the better the machine.

    `taken` is what of scarce things the task would take, which counts at the prices of the moment.
    """

    order: tuple[float, ...]
    cards: tuple[int, ...]
    taken: Amounts = ()


class Placer(Protocol):
    """Rates machines for tasks: a function of its arguments."""

    def option(self, state: State, ask: Ask) -> Option | None:
        """What the task would get there; None where it cannot run."""
        ...


class PolicyPlacer:
    """Both axes by policies; None stands for first fit on that axis.

    `taken` says what of scarce things goes with a choice, for policies that look at them. With
    `by_cards` the policies look at nothing but cards: what they say is remembered by these.
    """

    def __init__(
        self,
        node: NodeScorer | None,
        gpu: Objective | None,
        taken: Callable[[State, State], Amounts] | None = None,
        *,
        by_cards: bool = False,
    ) -> None:
        self._node = node
        self._gpu = gpu
        self._taken = taken
        self._by_cards = by_cards
        self._options: dict[tuple[object, ...], Option | None] = {}
        self._views: dict[State, NodeView] = {}
        self._devices: dict[tuple[Machine, int, CardUse], DeviceView] = {}

    def option(self, state: State, ask: Ask) -> Option | None:
        """The cards that the GPU policy takes, rated by the node policy."""
        if not state.holds(ask):
            return None
        # Policies see nothing of memory.
        key: tuple[object, ...] = (state.machine.model, state.cards, ask.cards, ask.milli)
        if not self._by_cards:
            key = (*key, state.cpu, ask.cpu)
        if key not in self._options:
            if len(self._options) >= _MOST_OPTIONS:
                self._options.clear()
            self._options[key] = self._option(state, ask)
        return self._options[key]

    def _option(self, state: State, ask: Ask) -> Option | None:
        sets = list(card_sets(state, ask))
        if not sets:
            return None
        if self._node is None and (self._gpu is None or len(sets) == 1):
            return Option((), sets[0])
        view = self._view_of(state)
        cards = self._best(view, sets, ask)
        if self._node is None:
            return Option((), cards)
        rank = self._node.rank(view, _choice(cards, ask))
        taken = self._taken(state, state.with_task(ask, cards)) if self._taken is not None else ()
        return Option(tuple([-value for value in rank]), cards, taken)

    def _best(self, view: NodeView, sets: list[tuple[int, ...]], ask: Ask) -> tuple[int, ...]:
        gpu = self._gpu
        if gpu is None or len(sets) == 1:
            return sets[0]
        # The first of equals, as everywhere.
        return max(sets, key=lambda cards: gpu.rank(view, _choice(cards, ask)))

    def _view_of(self, state: State) -> NodeView:
        known = self._views.get(state)
        if known is None:
            if len(self._views) >= _MOST_VIEWS:
                self._views.clear()
            devices = tuple(
                self._device(state.machine, index, card) for index, card in enumerate(state.cards)
            )
            known = self._views[state] = NodeView(name="", devices=devices, cpu=state.cpu)
        return known

    def _device(self, machine: Machine, index: int, card: CardUse) -> DeviceView:
        known = self._devices.get((machine, index, card))
        if known is None:
            known = self._devices[machine, index, card] = device(machine.model, index, card)
        return known


def device(model: str, index: int, card: CardUse) -> DeviceView:
    """A card as policies see it."""
    return DeviceView(
        id=DeviceId(DRIVER, "", f"gpu-{index}"),
        index=index,
        model=model,
        shareable=True,
        capacity=amounts(WHOLE_CARD),
        used=amounts(card.used) if card.used else {},
        shares=card.tasks,
    )


def _choice(cards: tuple[int, ...], ask: Ask) -> Choice:
    taken = tuple([Taken(card, amounts(ask.milli), exclusive=False) for card in cards])
    return Choice(taken, ask.cpu)


class StockPlacer:
    """Stands for kube-scheduler's default scores, for tasks without cards.

    Least allocated and balanced allocation of CPU and memory, each 0 to 100, as in Kubernetes; its
    other default scores are the same for all machines of a trace. Ties end on the order of the
    machines, where the real one draws.
    """

    def option(self, state: State, ask: Ask) -> Option | None:
        """How idle and how evenly used the machine would be."""
        if not state.holds(ask):
            return None
        cpu = (state.cpu - ask.cpu) / max(1, state.machine.cpu)
        memory = (state.memory - ask.memory) / max(1, state.machine.memory)
        least = (int(100 * cpu) + int(100 * memory)) // 2
        balanced = int(100 * (1 - abs(cpu - memory) / 2))
        return Option((-least - balanced,), ())
