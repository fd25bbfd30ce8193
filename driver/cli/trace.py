"""`quadrant simulate --trace`: how well policies place the tasks of a recorded cluster."""

import math
import random
import time
from collections.abc import Sequence

import msgspec
import typer

from driver.cli import scorers
from driver.cli.render import console
from driver.cli.render.trace import as_table
from driver.cli.simulation import recorded
from driver.cli.simulation.tracereport import Departures, Played, TraceReport
from driver.model.errors import QuadrantError
from driver.policy.registry import NONE, Registry
from driver.simulator.trace.deciders import by_lot, by_policy, in_order, with_stock_scheduler
from driver.simulator.trace.departures import play_leaving
from driver.simulator.trace.measure import Measure
from driver.simulator.trace.play import Decide, Decisions, Outcome, play
from driver.simulator.trace.tasks import Machine, Task, arrivals, capacity, mix

_OUTPUTS = ("table", "json")
_CPU_ONLY = ("policy", "stock")
_FIRST_FIT, _RANDOM = "first-fit", "random"
_DIGITS = 3


class TraceOptionError(QuadrantError):
    """Options that do not go together, or have no such value."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    nodes: str
    tasks: str
    policies: Sequence[str]
    seed: int = 42
    until: float = 1.3
    departures: bool = False
    cpu_only: str = "policy"
    output: str = "table"


class _Trace(msgspec.Struct, frozen=True):
    """A trace, and the tasks that are played from it."""

    machines: Sequence[Machine]
    recorded: Sequence[Task]
    played: Sequence[Task]


def simulate(asked: Asked) -> None:
    """Play the trace for each policy and print the result; raises `QuadrantError`."""
    _check(asked)
    registry = scorers.installed()
    trace = _read(asked)
    report = TraceReport(
        nodes=len(trace.machines),
        cards=sum(machine.cards for machine in trace.machines),
        seed=asked.seed,
        until=asked.until,
        cpu_only=asked.cpu_only,
        policies=tuple(_play(policy, trace, asked, registry) for policy in asked.policies),
    )
    if asked.output == "json":
        typer.echo(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        as_table(report, console.stdout())


def _check(asked: Asked) -> None:
    for value, known, hint in (
        (asked.output, _OUTPUTS, "-o"),
        (asked.cpu_only, _CPU_ONLY, "--cpu-only"),
    ):
        if value not in known:
            raise typer.BadParameter(f"{value!r}: expected {' or '.join(known)}", param_hint=hint)
    if not asked.policies:
        raise TraceOptionError("--trace needs at least one --policy, such as fragmentation")
    if not 0 < asked.until < math.inf:
        raise TraceOptionError(f"--until is {asked.until}: expected a number such as 1.3")


def _read(asked: Asked) -> _Trace:
    machines = recorded.machines(asked.nodes)
    tasks = recorded.tasks(asked.tasks, timed=asked.departures)
    if not capacity(machines):
        raise TraceOptionError(f"no node of {asked.nodes} has a card: nothing can be measured")
    until = math.ceil(asked.until * capacity(machines))
    played = arrivals(tasks, until=until, draw=random.Random(asked.seed).randrange)  # noqa: S311
    return _Trace(machines, tasks, tuple(played))


def _play(policy: str, trace: _Trace, asked: Asked, registry: Registry) -> Played:
    decisions = Decisions(_decide(policy, trace, asked, registry), time.perf_counter)
    outcome = play(trace.played, trace.machines, decisions, Measure(trace.recorded))
    leaving = _leaving(policy, trace, asked, registry) if asked.departures else None
    return _reported(policy, outcome, leaving)


def _decide(policy: str, trace: _Trace, asked: Asked, registry: Registry) -> Decide:
    if policy in {_FIRST_FIT, NONE}:
        decide = in_order()
    elif policy == _RANDOM:
        # Other draws than those of the tasks, so that all policies meet the same ones.
        decide = by_lot(random.Random(f"places of {asked.seed}").randrange)  # noqa: S311
    else:
        node, _, gpu = policy.partition("/")
        usual = mix(trace.recorded)
        decide = by_policy(node, gpu or node, mix=usual, machines=trace.machines, registry=registry)
    return with_stock_scheduler(decide) if asked.cpu_only == "stock" else decide


def _leaving(policy: str, trace: _Trace, asked: Asked, registry: Registry) -> Departures:
    decide = _decide(policy, trace, asked, registry)
    served = play_leaving(trace.played, trace.machines, decide)
    return Departures(
        served=round(served.served, _DIGITS),
        failed=served.failed,
        tasks=served.tasks,
        interval_seconds=round(served.interval, _DIGITS),
    )


def _reported(policy: str, outcome: Outcome, departures: Departures | None) -> Played:
    seconds = sorted(outcome.decisions) or [0.0]
    return Played(
        policy=policy,
        a95=_rounded(outcome.a95),
        a100=_rounded(outcome.a100),
        a130=_rounded(outcome.a130),
        tasks=outcome.tasks,
        failed=outcome.failed,
        fragmentation=_rounded(outcome.fragmentation),
        decision_mean_ms=round(1000 * sum(seconds) / len(seconds), _DIGITS),
        decision_p99_ms=round(1000 * seconds[99 * (len(seconds) - 1) // 100], _DIGITS),
        departures=departures,
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
