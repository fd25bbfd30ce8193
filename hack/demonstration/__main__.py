"""What does a person type, and in which order do things happen?"""

import argparse
import sys
import time

from driver.cli.render import console

from . import simulated
from .modes import MODES
from .show import Screen


def main() -> int:
    """Show all modes; 0 when all came out as they must, else 1."""
    options = _parser().parse_args()
    screen = Screen(console.stdout(), ascii_only=options.ascii)
    begin = time.monotonic()
    wrong = _simulated(screen)
    screen.say(f"\nfour modes simulated in {time.monotonic() - begin:.1f} s")
    return 1 if wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hack/demo", description="The two-by-two of policies.")
    parser.add_argument("--ascii", action="store_true", help="signs that every terminal has")
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


if __name__ == "__main__":
    sys.exit(main())
