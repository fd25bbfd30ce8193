"""What does a person type, and which sections does it give?"""

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator

from hack.benchmarks import (
    decisions,
    knowing,
    planning,
    preparing,
    resident,
    roundtrip,
    scheduling,
    starting,
)
from hack.benchmarks.figures import Section, document, table
from hack.benchmarks.fleet import FEWEST

Options = argparse.Namespace


def main() -> int:
    """Measure what is asked for; each section is shown as soon as it is there."""
    options = _parser().parse_args()
    wanted = list(_MEASURES) if options.what == "all" else [options.what]
    sections = []
    for name in wanted:
        began = time.monotonic()
        for section in _MEASURES[name](options):
            sections.append(section)
            if options.output == "table":
                print(f"\n{table(section)}", flush=True)
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    if options.output == "json":
        print(document(sections, _machine()).decode())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hack/bench",
        description="How fast Quadrant is, everything beside a reference of the same run.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("what", choices=[*_MEASURES, "all"])
    parser.add_argument("-o", "--output", choices=["table", "json"], default="table")
    add = parser.add_argument
    add("--seed", type=int, default=1, help="another seed: other nodes and cards in use")
    add("--nodes", type=_size, nargs="+", default=[500], help="nodes of eight GPUs, sizes in turn")
    add(
        "--decisions",
        type=int,
        default=1000,
        help="decisions of a case of commit, changes of ledger",
    )
    add("--pods", type=int, default=600, help="pods of each batch of schedule")
    add("--claims", type=int, default=1000, help="claims of prepare and memory")
    return parser


def _size(text: str) -> int:
    if (nodes := int(text)) < FEWEST:
        raise argparse.ArgumentTypeError(f"at least {FEWEST}: two nodes of each kind")
    return nodes


def _commit(options: Options) -> Iterator[Section]:
    for nodes in options.nodes:
        yield decisions.measure(nodes=nodes, decisions=options.decisions, seed=options.seed)
        yield roundtrip.measure(nodes=nodes, reviews=options.decisions, seed=options.seed)


def _ledger(options: Options) -> Iterator[Section]:
    for nodes in options.nodes:
        yield from knowing.measure(nodes=nodes, changes=options.decisions, seed=options.seed)


def _plan(options: Options) -> Iterator[Section]:
    for nodes in options.nodes:
        yield from planning.measure(nodes=nodes, decisions=options.decisions, seed=options.seed)


def _schedule(options: Options) -> Iterator[Section]:
    for nodes in options.nodes:
        yield scheduling.measure(nodes=nodes, pods=options.pods)


def _prepare(options: Options) -> Iterator[Section]:
    yield preparing.measure(options.claims)


def _start(_options: Options) -> Iterator[Section]:
    yield starting.measure()


def _memory(options: Options) -> Iterator[Section]:
    for nodes in options.nodes:
        yield resident.measure(nodes=nodes, count=options.claims, seed=options.seed)


_MEASURES: dict[str, Callable[[Options], Iterator[Section]]] = {
    "commit": _commit,
    "ledger": _ledger,
    "plan": _plan,
    "prepare": _prepare,
    "start": _start,
    "memory": _memory,
    "schedule": _schedule,
}


def _machine() -> dict[str, object]:
    """What the figures depend on besides the code."""
    return {
        "cpus": os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
    }


if __name__ == "__main__":
    sys.exit(main())
