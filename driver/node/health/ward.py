"""The health of a node in one piece: what is heard of the cards goes to all who act on it.

Taints go to the board, once there is one; the state of every device to the kubelet's bulletin.
"""

from collections.abc import Callable, Mapping

from driver.model.resourceslice import DeviceTaint
from driver.node.board import Board
from driver.node.card import Card
from driver.node.health.bulletin import Bulletin, of_devices
from driver.node.health.card import CardHealth
from driver.node.health.monitor import Monitor
from driver.node.health.verdict import taint
from driver.node.settings import Effect

# What the board knows us by.
_SOURCE = "health"


class Ward:
    """Only for the event loop's thread."""

    def __init__(
        self, monitor: Monitor, cards: Mapping[str, Card], *, driver: str, effect: Effect
    ) -> None:
        """`cards` are those that the monitor watches, by the name of their device."""
        self.bulletin = Bulletin()
        self._monitor = monitor
        self._indexes = {name: card.index for name, card in cards.items()}
        self._driver = driver
        self._effect: Effect = effect
        self._board: Board | None = None
        self._others: list[Callable[[Mapping[str, CardHealth]], None]] = []
        monitor.on_news.append(self._spread)
        self._spread()

    async def run(self) -> None:
        """Listen to hardware until cancelled."""
        await self._monitor.run()

    def show_on(self, board: Board) -> None:
        """From now on taints go there, and the board says which devices there are."""
        self._board = board
        self._spread()

    def tell(self, told: Callable[[Mapping[str, CardHealth]], None]) -> None:
        """Call `told` now and after all news, with the health of every card by its device."""
        self._others.append(told)
        told(self.cards())

    def cards(self) -> dict[str, CardHealth]:
        """The health of every card, by the name of its device."""
        return {name: self._monitor.cards[index] for name, index in self._indexes.items()}

    def _spread(self) -> None:
        cards = self.cards()
        if self._board is not None:
            self._board.taints(_SOURCE, self._taints(cards))
        names = self._board.names if self._board is not None else ()
        # The instance before may still be telling the kubelet what it knows.
        if self._monitor.has_looked:
            self.bulletin.tell(of_devices(names or tuple(cards), cards))
        for told in self._others:
            told(cards)

    def _taints(self, cards: Mapping[str, CardHealth]) -> dict[str, tuple[DeviceTaint, ...]]:
        found = {
            name: taint(card, driver=self._driver, effect=self._effect)
            for name, card in cards.items()
        }
        return {name: (one,) for name, one in found.items() if one is not None}
