"""`quadrant simulate --trace`: how well policies place the tasks of a recorded cluster."""

import math
import random
import time
from collections.abc import Sequence

import msgspec
import typer

from driver.cli import scorers
from driver.cli.pairs import pair
from driver.cli.render import console, structured
from driver.cli.render.trace import as_table
from driver.cli.simulation import recorded
from driver.cli.simulation.bounds import Figures, bound, check
from driver.cli.simulation.recorded import TraceError
from driver.cli.simulation.tracereport import Departures, Played, TraceReport
from driver.cli.usage import UsageError, told_by
from driver.policy.registry import Registry
from driver.simulator.trace.deciders import by_lot, by_policy, in_order, with_stock_scheduler
from driver.simulator.trace.departures import play_leaving
from driver.simulator.trace.measure import Measure
from driver.simulator.trace.play import Decide, Decisions, Outcome, play
from driver.simulator.trace.tasks import Machine, Task, arrivals, capacity, mix

_OUTPUTS = ("table", "json")
_CPU_ONLY = ("policy", "stock")
# For comparison: the first place of all, or one drawn by lot.
_FIRST_FIT, _RANDOM = "first-fit", "random"
_OTHERS = {_FIRST_FIT, _RANDOM}
_DIGITS = 3
# The figures of which more is better; `served` only where tasks leave.
_BOUNDED = ("a95", "a100", "a130")
_SERVED = "served"


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    nodes: str
    tasks: str
    policies: Sequence[str]
    seed: int = 42
    until: float = 1.3
    departures: bool = False
    cpu_only: str = "policy"
    fail_below: Sequence[str] = ()
    output: str = "table"


class _Trace(msgspec.Struct, frozen=True):
    """A trace, and the tasks that are played from it."""

    machines: Sequence[Machine]
    recorded: Sequence[Task]
    played: Sequence[Task]


def simulate(asked: Asked) -> None:
    """Play the trace for each policy and print the result.

    Raises `UsageError`, `QuadrantError` for what is wrong with the trace, and `BoundError` when a
    metric is below its bound.
    """
    _check(asked)
    registry = scorers.installed()
    with told_by("--fail-below"):
        known = (*_BOUNDED, _SERVED) if asked.departures else _BOUNDED
        bounds = [bound(text, known) for text in asked.fail_below]
    with told_by("--policy"):
        for policy in asked.policies:
            if policy not in _OTHERS:
                pair(policy, registry)
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
        typer.echo(structured.as_json(report))
    else:
        as_table(report, console.stdout())
    check(bounds, ((one.policy, _figures(one)) for one in report.policies))


def _check(asked: Asked) -> None:
    for value, known, hint in (
        (asked.output, _OUTPUTS, "-o"),
        (asked.cpu_only, _CPU_ONLY, "--cpu-only"),
    ):
        if value not in known:
            raise UsageError(f"{hint}: {value!r} is not known: expected {' or '.join(known)}")
    if not asked.policies:
        raise UsageError("--trace needs at least one --policy, such as fragmentation")
    if not 0 < asked.until < math.inf:
        raise UsageError(f"--until: {asked.until} cannot be: expected a number such as 1.3")


def _read(asked: Asked) -> _Trace:
    machines = recorded.machines(asked.nodes)
    tasks = recorded.tasks(asked.tasks, timed=asked.departures)
    if not capacity(machines):
        raise TraceError(f"trace {asked.nodes}: no node has a card, so nothing can be measured")
    until = math.ceil(asked.until * capacity(machines))
    played = arrivals(tasks, until=until, draw=random.Random(asked.seed).randrange)  # noqa: S311
    return _Trace(machines, tasks, tuple(played))


def _play(policy: str, trace: _Trace, asked: Asked, registry: Registry) -> Played:
    decisions = Decisions(_decide(policy, trace, asked, registry), time.perf_counter)
    outcome = play(trace.played, trace.machines, decisions, Measure(trace.recorded))
    leaving = _leaving(policy, trace, asked, registry) if asked.departures else None
    return _reported(policy, outcome, leaving)


def _decide(policy: str, trace: _Trace, asked: Asked, registry: Registry) -> Decide:
    if policy == _FIRST_FIT:
        decide = in_order()
    elif policy == _RANDOM:
        # Other draws than those of the tasks, so that all policies meet the same ones.
        decide = by_lot(random.Random(f"places of {asked.seed}").randrange)  # noqa: S311
    else:
        both, usual = pair(policy, registry), mix(trace.recorded)
        decide = by_policy(
            both.node, both.gpu, mix=usual, machines=trace.machines, registry=registry
        )
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


def _figures(played: Played) -> Figures:
    served = None if played.departures is None else played.departures.served
    return {"a95": played.a95, "a100": played.a100, "a130": played.a130, _SERVED: served}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
