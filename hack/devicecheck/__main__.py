"""Asks both, prints what was found, and says in what they differ."""

import argparse
import sys
from collections.abc import Sequence

import msgspec
from rich.console import Console
from rich.table import Table

from driver.model.errors import QuadrantError
from driver.node.card import MIB, Card
from driver.node.nvidia.inventory import NvmlInventory
from hack.devicecheck import smi
from hack.devicecheck.compare import differences

_COLUMNS = (
    *("INDEX", "UUID", "PRODUCT", "MEMORY", "PCI", "ROOT", "SWITCH", "NUMA", "NVLINK"),
    *("MODULE", "ADDRESSING", "MIG", "LOST"),
)


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` prints."""

    cards: tuple[Card, ...]
    differences: tuple[str, ...]


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="hack/device-check", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    as_json = parser.parse_args().json
    try:
        cards = NvmlInventory().cards()
        report = Report(cards=cards, differences=differences(cards, smi.ask()))
    except (QuadrantError, smi.SmiError) as error:
        print(f"device-check: {error}", file=sys.stderr)
        return 2
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(report)).decode())
    else:
        _print(report)
    return 1 if report.differences else 0


def _print(report: Report) -> None:
    table = Table(*_COLUMNS, box=None, pad_edge=False)
    for card in report.cards:
        table.add_row(*_row(card))
    console = Console(width=None if sys.stdout.isatty() else 240, highlight=False)
    with console.capture() as drawn:
        console.print(table)
    print("\n".join(line.rstrip() for line in drawn.get().splitlines()))
    for difference in report.differences:
        print(f"DIFFERENT: {difference}")
    if not report.differences:
        print("nvidia-smi says the same.")


def _row(card: Card) -> Sequence[str]:
    memory = f"{card.memory // MIB} MiB" if card.memory else None
    facts = (card.index, card.uuid, card.product_name, memory)
    places = (card.pci_bus_id, card.pcie_root, card.pcie_switch, card.numa_node, card.nvlink_group)
    more = (card.module_id, card.addressing_mode, _mig(card), card.lost)
    return ["-" if fact in (None, "") else str(fact) for fact in (*facts, *places, *more)]


def _mig(card: Card) -> str | None:
    if card.mig is None:
        return None
    if not card.mig.enabled:
        return "off"
    return " ".join(f"{one.profile}@{one.start}" for one in card.mig.instances) or "on"


if __name__ == "__main__":
    sys.exit(main())
