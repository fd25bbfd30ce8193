"""Plays a trace for several policies and seeds, and prints one row for each policy."""

import argparse
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from driver.cli.simulation import recorded
from driver.policy.registry import BUILT_IN
from driver.simulator.trace.deciders import by_lot, by_policy, in_order, with_stock_scheduler
from driver.simulator.trace.measure import Measure
from driver.simulator.trace.play import Decide, Decisions, Outcome, play
from driver.simulator.trace.tasks import Machine, Task, arrivals, capacity, mix
from hack.traces.variants import VARIANTS

_TRACE = Path(__file__).resolve().parents[2].parent / "shared" / "trace"
_POLICIES = ("random", "first-fit", "hami", "spread", "compact", "fragmentation")
_UNTIL = 1.3


def main() -> int:
    """Play what is asked for; each row is shown as soon as it is there."""
    options = _parser().parse_args()
    machines = recorded.machines(options.nodes)[:: options.every]
    tasks = VARIANTS[options.variant](machines, recorded.tasks(options.tasks))
    print(f"{len(machines)} nodes, {capacity(machines) // 1000} cards, {len(tasks)} tasks")
    print("policy          cpu-only  a95    a100   (least-most)   a130   frag   s/seed", flush=True)
    for policy in options.policies:
        for cpu_only in options.cpu_only:
            began = time.process_time()
            played = list(_play(policy, cpu_only, options.seeds, machines=machines, tasks=tasks))
            seconds = (time.process_time() - began) / len(played)
            print(f"{policy:15} {cpu_only:8}  {_figures(played)}  {seconds:5.1f}", flush=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hack/trace",
        description="How well policies place a recorded cluster's tasks, over several seeds.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--nodes", default=str(_TRACE / "nodes.csv"))
    parser.add_argument("--tasks", default=str(_TRACE / "tasks-default.csv"))
    parser.add_argument("--every", type=int, default=1, help="only every so many nodes: quicker")
    parser.add_argument("--variant", choices=VARIANTS, default="default")
    parser.add_argument("--policies", nargs="+", default=list(_POLICIES))
    parser.add_argument("--cpu-only", nargs="+", choices=["policy", "stock"], default=["policy"])
    parser.add_argument("--seeds", type=_seeds, default="42-51", help="FIRST-LAST or one")
    return parser


def _seeds(text: str) -> Sequence[int]:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _play(
    policy: str,
    cpu_only: str,
    seeds: Sequence[int],
    *,
    machines: Sequence[Machine],
    tasks: Sequence[Task],
) -> Iterator[Outcome]:
    until = round(_UNTIL * capacity(machines))
    for seed in seeds:
        decide = _decide(policy, seed, machines, tasks)
        if cpu_only == "stock":
            decide = with_stock_scheduler(decide)
        drawn = arrivals(tasks, until=until, draw=random.Random(seed).randrange)  # noqa: S311
        yield play(drawn, machines, Decisions(decide, time.perf_counter), Measure(tasks))


def _decide(policy: str, seed: int, machines: Sequence[Machine], tasks: Sequence[Task]) -> Decide:
    if policy == "first-fit":
        return in_order()
    if policy == "random":
        return by_lot(random.Random(f"places of {seed}").randrange)  # noqa: S311
    node, _, gpu = policy.partition("/")
    return by_policy(node, gpu or node, mix=mix(tasks), machines=machines, registry=BUILT_IN)


def _figures(played: Sequence[Outcome]) -> str:
    a100 = [one.a100 or 0.0 for one in played]
    return (
        f"{fmean(one.a95 or 0.0 for one in played):5.2f}  {fmean(a100):5.2f}  "
        f"({min(a100):5.2f}-{max(a100):5.2f})  {fmean(one.a130 or 0.0 for one in played):5.2f}  "
        f"{fmean(one.fragmentation or 0.0 for one in played):5.2f}"
    )


if __name__ == "__main__":
    sys.exit(main())
