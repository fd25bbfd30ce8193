"""What the node shows of its cards: the devices with the operator's attributes, kept up to date.

Knows when to look again; what there is to see is known by `driver.node.local` and the rules.
"""

import asyncio
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from driver.node import lost
from driver.node.board import Board
from driver.node.errors import InventoryError
from driver.node.local import LocalNode
from driver.node.settings import NodeSettings

if TYPE_CHECKING:
    from driver.node.rules.follow import RulesFile

# Reading all facts of a card takes the driver some time, and they seldom change.
_PERIOD_S = 60.0
# In the plugin's folder: the last good rules.
_KEPT = "attribute-rules.yaml"

log = structlog.get_logger(__name__)


class Showing:
    """Puts devices on the board; `start` it, then `run` it as a task."""

    def __init__(
        self,
        local: LocalNode,
        settings: NodeSettings,
        board: Board,
        *,
        counters: bool,
        on_refusal: Callable[[str], None],
        period: float = _PERIOD_S,
    ) -> None:
        """`counters` says whether the API server keeps them, `on_refusal` hears of bad rules."""
        self._local = local
        self._settings = settings
        self._board = board
        self._counters = counters
        self._period = period
        self._on_refusal = on_refusal
        self._rules: RulesFile | None = None

    async def start(self) -> None:
        """Show what there is."""
        kept = Path(self._settings.data_dir()) / _KEPT
        if self._settings.attribute_rules:
            self._rules = await self._rules_file(kept)
            devices = self._local.offered.devices(counters=self._counters)
            await self._rules.start(self._board, devices)
        else:
            kept.unlink(missing_ok=True)
        self._show()

    async def _rules_file(self, kept: Path) -> "RulesFile":
        # The language of selectors is for those who use it, and takes a while to import.
        await asyncio.to_thread(import_module, "driver.node.rules.follow")
        from driver.node.rules.follow import RulesFile  # noqa: PLC0415

        return RulesFile(
            Path(self._settings.attribute_rules),
            kept=kept,
            driver=self._settings.driver,
            on_refusal=self._on_refusal,
        )

    async def run(self) -> None:
        """Look at the cards and the rules again and again, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow_cards())
            if self._rules is not None:
                group.create_task(self._rules.run(self._board))

    async def _follow_cards(self) -> None:
        while not self._settings.simulate:
            await asyncio.sleep(self._period)
            try:
                if await self._local.reread():
                    self._show()
            except InventoryError as error:
                log.warning("cards not read again; they stay as they are", error=str(error))

    def _show(self) -> None:
        self._board.devices(self._local.offered.devices(counters=self._counters))
        taints = lost.taints(self._local.cards, driver=self._settings.driver)
        self._board.taints(lost.SOURCE, taints)
        for card in self._local.cards:
            if card.lost is not None:
                log.warning("a card does not answer", card=card.index, reason=card.lost)
