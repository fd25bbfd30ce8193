"""Several policies on the same input, side by side: numbers, pictures, and what did not fit."""

from collections.abc import Callable, Iterator

from rich.console import Console
from rich.text import Text

from driver.cli.render.matrix import ASCII, UNICODE, side_by_side
from driver.cli.render.simulation import pending
from driver.cli.render.table import table
from driver.cli.simulation.report import Comparison, Metrics

# How metrics are called on the screen; the names are those of the JSON.
ROWS: tuple[tuple[str, str, Callable[[Metrics], float]], ...] = (
    ("placed", "pods that run", lambda one: one.placed),
    ("pending", "pods that wait or were refused", lambda one: one.pending),
    ("cardsUsed", "cards of which something is in use", lambda one: one.cards_used),
    ("cardsFree", "cards that are free", lambda one: one.cards_free),
    ("nodesUsed", "nodes with a card in use", lambda one: one.nodes_used),
    ("nodesFree", "nodes whose cards are all free", lambda one: one.nodes_free),
    ("largestFreeGroup", "free cards of one NVLink group", lambda one: one.largest_free_group),
    ("fragmentation", "% of the free memory on cards in use", lambda one: one.fragmentation),
)


def as_table(comparison: Comparison, console: Console, *, ascii_only: bool) -> None:
    """One column for each policy."""
    for line in _numbers(comparison):
        console.print(line, soft_wrap=True)
    console.print()
    reports = comparison.simulations
    columns = [("BEFORE", reports[0].before)]
    columns += [(report.policy, report.cards) for report in reports]
    for line in side_by_side(columns, ASCII if ascii_only else UNICODE):
        console.print(line, no_wrap=True)
    for report in reports:
        pending(report, console, title=f"{report.policy}: ")


def _numbers(comparison: Comparison) -> Iterator[Text]:
    reports = comparison.simulations
    head = ("METRIC", *(report.policy for report in reports), "")
    rows = [
        (name, *(f"{value(report.metrics):g}" for report in reports), meaning)
        for name, meaning, value in ROWS
    ]
    return table(head, rows, right=range(1, 1 + len(reports)))
