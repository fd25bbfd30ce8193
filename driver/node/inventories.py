"""Where a node's cards come from: ours, and what other packages bring along.

Others are entry points of the group `quadrant.inventories`. The entry point's name is what the
setting `inventory` says; what it points to takes `NodeSettings` and returns an inventory
(`driver.node.card.Inventory`). Nothing is imported before it is asked for.
"""

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from driver.model.errors import QuadrantError
from driver.node.card import Inventory
from driver.node.errors import SettingsError
from driver.node.roster import Roster
from driver.node.settings import NodeSettings

GROUP = "quadrant.inventories"
NVML = "nvml"
SIMULATED = "simulated"

_OURS = (
    EntryPoint(name=NVML, value="driver.node.nvidia.inventory:NvmlInventory.of", group=GROUP),
    EntryPoint(name=SIMULATED, value="driver.node.simulated:SimulatedInventory.of", group=GROUP),
)


def inventory(settings: NodeSettings) -> Inventory:
    """The inventory that the settings ask for; raises `SettingsError`."""
    return make(settings, entry_points(group=GROUP))


def chosen(settings: NodeSettings) -> str:
    """Name of the inventory that the settings ask for."""
    return settings.inventory or (SIMULATED if settings.simulate else NVML)


def numbered(settings: NodeSettings, inventory: Inventory, *, boot: str) -> Inventory:
    """The inventory with numbers that stay; simulated cards come and go as the settings say."""
    if chosen(settings) == SIMULATED:
        return inventory
    return Roster(inventory, Path(settings.data_dir()) / "cards.json", boot=boot)


def make(settings: NodeSettings, found: Iterable[EntryPoint]) -> Inventory:
    """As `inventory`, from these entry points of other packages."""
    name = chosen(settings)
    known = _by_name(found)
    if name not in known:
        raise SettingsError(
            f"no inventory is called {name!r}; known are {', '.join(sorted(known))}: install the "
            f"package that brings it (an entry point of the group {GROUP}), or name another"
        )
    return _made(known[name], settings)


def _by_name(found: Iterable[EntryPoint]) -> dict[str, EntryPoint]:
    by_name = {entry.name: entry for entry in _OURS}
    for entry in found:
        known = by_name.setdefault(entry.name, entry)
        if known.value != entry.value:
            raise SettingsError(
                f"inventory {entry.name!r} comes from two packages, {_origin(known)} and "
                f"{_origin(entry)}: uninstall one of them, or let it use another name"
            )
    return by_name


def _made(entry: EntryPoint, settings: NodeSettings) -> Inventory:
    try:
        inventory: Inventory = entry.load()(settings)
    except QuadrantError:
        raise
    except ImportError as error:
        advice = "install quadrant-dra[nvml], or set simulate" if entry.name == NVML else "see why"
        raise SettingsError(
            f"inventory {entry.name!r} of {_origin(entry)} cannot be imported: {error}; {advice}"
        ) from error
    except Exception as error:
        raise SettingsError(
            f"inventory {entry.name!r} of {_origin(entry)} cannot be made: "
            f"{type(error).__name__}: {error}"
        ) from error
    if not callable(getattr(inventory, "cards", None)):
        raise SettingsError(
            f"inventory {entry.name!r} of {_origin(entry)} is none: {entry.value} returned a "
            f"{type(inventory).__name__}; expected an object with cards()"
        )
    return inventory


def _origin(entry: EntryPoint) -> str:
    return f"{entry.dist.name} ({entry.value})" if entry.dist is not None else entry.value
