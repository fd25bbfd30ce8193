"""Text for a terminal, a pipe, or a terminal that shows the same thing again and again."""

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from driver.cli.render import console


def lines(found: Iterable[Text], *, again: bool = False) -> None:
    """Print them; `again` clears a terminal first, and leaves a blank line elsewhere."""
    out = console.stdout()
    if again:
        clear(out)
    for line in found:
        out.print(line, soft_wrap=True)


def clear(out: Console) -> None:
    """Begin a new screen, where there is one."""
    if out.is_terminal:
        out.clear()
    else:
        out.print()


def words(missing: Iterable[str]) -> None:
    """What the user should know besides, on stderr."""
    err = console.stderr()
    for one in dict.fromkeys(missing):
        err.print(f"warning: {one}", markup=False)


def notice(text: str) -> None:
    """One sentence on stderr in place of a table that would be empty."""
    console.stderr().print(text, markup=False)
