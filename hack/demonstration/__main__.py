"""What does a person type, and in which order do things happen?"""

import argparse
import sys
import time

from driver.cli.render import console
from hack.deployment import DeploymentError

from . import on_cluster, simulated
from .modes import MODES
from .show import Screen, differences


def main() -> int:
    """Show all modes; 0 when all came out as they must, else 1."""
    options = _parser().parse_args()
    screen = Screen(console.stdout(), ascii_only=options.ascii)
    begin = time.monotonic()
    wrong = _simulated(screen)
    screen.say(f"\nfour modes simulated in {time.monotonic() - begin:.1f} s")
    if options.cluster:
        try:
            wrong += _on_cluster(screen)
        except (on_cluster.ClusterDemoError, DeploymentError) as error:
            print(f"hack/demo: {error}", file=sys.stderr)
            return 1
    return 1 if wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hack/demo", description="The two-by-two of policies.")
    parser.add_argument("--ascii", action="store_true", help="signs that every terminal has")
    parser.add_argument(
        "--cluster", action="store_true", help="then the same on a real Kubernetes (root)"
    )
    return parser


def _simulated(screen: Screen) -> int:
    """How many modes came out wrong."""
    wrong = 0
    for mode in MODES:
        report = simulated.run(mode)
        rows = simulated.rows(report)
        screen.heading(mode, "simulated")
        screen.outcome(rows, report.cards)
        problem = mode.check(rows)
        screen.verdict(mode, problem)
        wrong += bool(problem)
    return wrong


def _on_cluster(screen: Screen) -> int:
    """How many modes came out wrong, or otherwise than simulated."""
    wrong = 0
    with on_cluster.quadrant(screen) as deployment:
        for mode in MODES:
            report = simulated.run(mode)
            begin = time.monotonic()
            with on_cluster.running(deployment, mode) as containers:
                rows = [one.row for one in containers]
                took = f"{time.monotonic() - begin:.1f} s"
                screen.heading(mode, f"on a real cluster, told by the containers after {took}")
                screen.outcome(rows, on_cluster.cards(report.cards, containers))
            problem = mode.check(rows) or differences(simulated.rows(report), rows)
            screen.verdict(mode, problem, also="; the same cards as simulated")
            wrong += bool(problem)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
