"""Puts the health of a node together, by its settings and by what its inventory can tell."""

from collections.abc import Callable, Mapping
from pathlib import Path

from driver.node.card import Card, Inventory
from driver.node.health.card import Rules
from driver.node.health.memory import Memory
from driver.node.health.monitor import Monitor
from driver.node.health.port import HealthSource, WatchedInventory
from driver.node.health.simulated import SimulatedHealth
from driver.node.health.ward import Ward
from driver.node.health.xids import OF_PROGRAMS
from driver.node.settings import NodeSettings


def start_ward(
    settings: NodeSettings, inventory: Inventory, cards: Mapping[str, Card], *, boot: str
) -> Ward:
    """The ward of the cards, given by the name of their device. Blocks on the disk."""
    folder = Path(settings.data_dir())
    found = tuple(cards.values())
    rules = Rules(
        ignored_xids=OF_PROGRAMS | frozenset(settings.ignored_xids),
        quiet_s=settings.quiet_seconds,
    )
    memory = Memory(folder / "health.json", boot=boot)
    monitor = Monitor(found, _source(settings, inventory, found), memory, rules=rules)
    return Ward(monitor, cards, driver=settings.driver, effect=settings.unhealthy_effect)


def _source(
    settings: NodeSettings, inventory: Inventory, cards: tuple[Card, ...]
) -> Callable[[], HealthSource] | None:
    if settings.simulate:
        return lambda: SimulatedHealth(cards, Path(settings.data_dir()) / "faults")
    if isinstance(inventory, WatchedInventory):
        return lambda: inventory.health(cards)
    return None
