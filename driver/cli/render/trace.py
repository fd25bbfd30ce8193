"""What policies made of a trace, side by side."""

from collections.abc import Callable, Iterator

from rich.console import Console
from rich.text import Text

from driver.cli.render.table import table
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
    for line in _figures(report):
        console.print(line, soft_wrap=True)
    console.print()
    cpu_only = "the policy" if report.cpu_only == "policy" else "a stand-in of kube-scheduler"
    console.print(
        Text(
            f"{report.nodes} nodes, {report.cards} cards, {report.policies[0].tasks} tasks, seed "
            f"{report.seed}; tasks without a card are placed by {cpu_only}"
        ),
        soft_wrap=True,
    )


def _figures(report: TraceReport) -> Iterator[Text]:
    head = ("METRIC", *(played.policy for played in report.policies), "")
    leaving = any(one.departures for one in report.policies)
    rows = [
        (name, *(_text(value(played)) for played in report.policies), meaning)
        for name, meaning, value in (*_ROWS, *(_LEAVING if leaving else ()))
    ]
    return table(head, rows, right=range(1, 1 + len(report.policies)))


def _text(value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.2f}"
