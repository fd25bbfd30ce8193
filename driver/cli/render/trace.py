"""What policies made of a trace, side by side."""

from collections.abc import Callable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from driver.cli.simulation.tracereport import Played, TraceReport

_ROWS: tuple[tuple[str, str, Callable[[Played], float | None]], ...] = (
    ("a95", "% of all cards allocated, when tasks for 95 % have come", lambda one: one.a95),
    ("a100", "... for 100 %", lambda one: one.a100),
    ("a130", "... for 130 %", lambda one: one.a130),
    ("failed", "tasks that found no place", lambda one: one.failed),
    ("fragmentation", "% of all cards that usual tasks cannot use", lambda one: one.fragmentation),
    ("decisionMeanMs", "a decision takes, on average", lambda one: one.decision_mean_ms),
    ("decisionP99Ms", "... 99 of 100 at most", lambda one: one.decision_p99_ms),
)
_LEAVING: tuple[tuple[str, str, Callable[[Played], float | None]], ...] = (
    (
        "served",
        "% of what is asked for at a time, where tasks leave",
        lambda one: one.departures.served if one.departures else None,
    ),
    (
        "servedFailed",
        "tasks that found no place then",
        lambda one: one.departures.failed if one.departures else None,
    ),
)


def as_table(report: TraceReport, console: Console) -> None:
    """One column for each policy."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("METRIC", no_wrap=True)
    for played in report.policies:
        table.add_column(Text(played.policy), justify="right", no_wrap=True)
    table.add_column("")
    rows = (*_ROWS, *(_LEAVING if any(one.departures for one in report.policies) else ()))
    for name, meaning, value in rows:
        numbers = (_text(value(played)) for played in report.policies)
        table.add_row(name, *numbers, Text(meaning, style="dim"))
    console.print(table)
    console.print()
    cpu_only = "the policy" if report.cpu_only == "policy" else "a stand-in of kube-scheduler"
    console.print(
        Text(
            f"{report.nodes} nodes, {report.cards} cards, {report.policies[0].tasks} tasks, seed "
            f"{report.seed}; tasks without a card are placed by {cpu_only}"
        )
    )


def _text(value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.2f}"
