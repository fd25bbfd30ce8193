"""A simulation's report as tables and a picture."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from driver.cli.render.matrix import ASCII, UNICODE, matrix
from driver.cli.simulation.report import CardUse, PendingPod, Placement, Report

# So many names are listed where pods share a reason.
_FEW = 3


def as_table(report: Report, console: Console, *, ascii_only: bool) -> None:
    """Placements, cards, picture, pending pods and reasons, for people."""
    if report.placements:
        console.print(placements(report.placements))
        console.print()
    if report.cards:
        console.print(_cards(report.cards))
        console.print()
        for line in matrix(report.cards, ASCII if ascii_only else UNICODE):
            console.print(line, no_wrap=True)
    _reasons(report.placements, console)
    pending(report, console)


def placements(found: Sequence[Placement]) -> Table:
    """One row for each device of each pod."""
    table = _table("POD", "NODE", "GPU", "UUID", "MEMORY")
    for placement in found:
        for device in placement.devices:
            memory = f"{device.memory_mib} MiB" if device.shared else "whole card"
            table.add_row(_name(placement), placement.node, str(device.index), device.uuid, memory)
        if not placement.devices:
            table.add_row(_name(placement), placement.node, "-", "-", "-")
    return table


def _cards(cards: Sequence[CardUse]) -> Table:
    table = _table("NODE", "GPU", "PRODUCT", "MEMORY IN USE", "SHARES")
    for card in cards:
        used = f"{card.memory_used_mib} of {card.memory_mib} MiB"
        shares = "whole" if card.exclusive else str(card.shares)
        table.add_row(card.node, str(card.index), card.product, used, shares)
    return table


def _reasons(found: Sequence[Placement], console: Console) -> None:
    if any(placement.why for placement in found):
        console.print()
        console.print(Text("WHY", style="bold"))
    for placement in found:
        for sentence in placement.why:
            console.print(Text(f"{_name(placement)}: {sentence}"), soft_wrap=True)


def pending(report: Report, console: Console, *, title: str = "") -> None:
    """Pods that do not run; those with one reason stand together."""
    if not report.pending:
        return
    pods = len(report.placements) + len(report.pending)
    console.print()
    console.print(Text(f"{title}PENDING ({len(report.pending)} of {pods} pods)", style="bold"))
    by_reason: dict[tuple[bool, str], list[str]] = {}
    for pod in report.pending:
        by_reason.setdefault((pod.refused, pod.reason), []).append(_name(pod))
    for (refused, reason), names in by_reason.items():
        said = "refused: " if refused else ""
        console.print(Text(f"{_some(names)}: {said}{reason}"), soft_wrap=True)


def _some(names: Sequence[str]) -> str:
    """All of a few names, the first of many."""
    if len(names) <= _FEW:
        return ", ".join(names)
    return f"{', '.join(names[:_FEW])} and {len(names) - _FEW} more"


def _name(pod: Placement | PendingPod) -> str:
    """The pod's name, with its namespace where that is not the usual one."""
    return pod.pod if pod.namespace == "default" else f"{pod.namespace}/{pod.pod}"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table
