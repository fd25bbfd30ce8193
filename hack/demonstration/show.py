"""How is a mode shown? A table, a picture, and whether it came out as it must."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.console import Console
from rich.text import Text

from driver.cli.render.matrix import ASCII, UNICODE, matrix
from driver.cli.render.table import table
from driver.cli.simulation.report import CardUse

from .modes import Mode, Row


class Screen:
    """Where it is shown; `ascii_only` draws with signs that every terminal has."""

    def __init__(self, console: Console, *, ascii_only: bool) -> None:
        self._console = console
        self._signs = ASCII if ascii_only else UNICODE

    def heading(self, mode: Mode, where: str) -> None:
        """Which mode, and where it runs."""
        self._console.print()
        title = f"{mode.letter}  node {mode.node}, GPU {mode.gpu}  ({where})"
        self._console.print(Text(title, style="bold"))

    def outcome(self, rows: Sequence[Row], cards: Sequence[CardUse]) -> None:
        """Who got what, as a table and as a picture."""
        shown = [(row.pod, row.node, str(row.gpu), row.uuid) for row in rows]
        for line in (*table(("POD", "NODE", "GPU", "UUID"), shown), Text()):
            self._console.print(line, soft_wrap=True)
        for line in matrix(cards, self._signs):
            self._console.print(line, no_wrap=True)

    def verdict(self, mode: Mode, problem: str, also: str = "") -> None:
        """Whether it is what must come out; `also` is said when it is."""
        if problem:
            self._console.print(Text(f"WRONG: {problem}; must be: {mode.expected}", style="red"))
        else:
            self._console.print(Text(f"as it must be: {mode.expected}{also}", style="green"))

    def say(self, text: str) -> None:
        """One line."""
        self._console.print(text, markup=False)


def differences(simulated: Iterable[Row], real: Iterable[Row]) -> str:
    """What the two say differently about how many pods are on which card; "" when they agree.

    Names of pods are random on a real cluster, so they do not count.
    """
    wanted = Counter((row.node, row.gpu, row.uuid) for row in simulated)
    found = Counter((row.node, row.gpu, row.uuid) for row in real)
    parts = [
        f"{found[card]} pod(s) on {card[0]} GPU {card[1]}, the simulation says {wanted[card]}"
        for card, _ in groupby(sorted((*wanted, *found)))
        if wanted[card] != found[card]
    ]
    return "; ".join(parts)
