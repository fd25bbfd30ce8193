"""A simulation's report as tables and a picture."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.text import Text

from driver.cli.render.matrix import ASCII, UNICODE, matrix
from driver.cli.render.table import table
from driver.cli.simulation.report import CardUse, PendingPod, Placement, Report

# So many names are listed where pods share a reason.
_FEW = 3


def as_table(report: Report, console: Console, *, ascii_only: bool) -> None:
    """Placements, cards, picture, pending pods and reasons, for people."""
    if report.placements:
        _print(placements(report.placements), console)
    if report.cards:
        _print(_cards(report.cards), console)
        for line in matrix(report.cards, ASCII if ascii_only else UNICODE):
            console.print(line, no_wrap=True)
    _reasons(report.placements, console)
    pending(report, console)


def placements(found: Sequence[Placement]) -> Iterator[Text]:
    """One row for each device of each pod."""
    rows = [row for placement in found for row in _devices(placement)]
    return table(("POD", "NODE", "GPU", "UUID", "MEMORY"), rows)


def _devices(placement: Placement) -> Iterator[tuple[str, ...]]:
    for device in placement.devices:
        memory = f"{device.memory_mib} MiB" if device.shared else "whole card"
        yield _name(placement), placement.node, str(device.index), device.uuid, memory
    if not placement.devices:
        yield _name(placement), placement.node, "-", "-", "-"


def _cards(cards: Sequence[CardUse]) -> Iterator[Text]:
    rows = [
        (
            card.node,
            str(card.index),
            card.product,
            f"{card.memory_used_mib} of {card.memory_mib} MiB",
            "whole" if card.exclusive else str(card.shares),
        )
        for card in cards
    ]
    return table(("NODE", "GPU", "PRODUCT", "MEMORY IN USE", "SHARES"), rows)


def _print(lines: Iterable[Text], console: Console) -> None:
    """A block, and an empty line after it."""
    for line in (*lines, Text()):
        console.print(line, soft_wrap=True)


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
    by_reason: dict[tuple[bool, str, tuple[str, ...]], list[str]] = {}
    for pod in report.pending:
        by_reason.setdefault((pod.refused, pod.reason, pod.would_fit), []).append(_name(pod))
    for (refused, reason, would_fit), names in by_reason.items():
        said = "refused: " if refused else ""
        console.print(Text(f"{_some(names)}: {said}{reason}"), soft_wrap=True)
        for one in would_fit:
            console.print(Text(f"  what would make it fit: {one}"), soft_wrap=True)


def _some(names: Sequence[str]) -> str:
    """All of a few names, the first of many."""
    if len(names) <= _FEW:
        return ", ".join(names)
    return f"{', '.join(names[:_FEW])} and {len(names) - _FEW} more"


def _name(pod: Placement | PendingPod) -> str:
    """The pod's name, with its namespace where that is not the usual one."""
    return pod.pod if pod.namespace == "default" else f"{pod.namespace}/{pod.pod}"
