"""Where output goes: results to stdout, words about them to stderr; no colour where it is unwanted.

`NO_COLOR` and output that is no terminal switch colour off (rich does that).
"""

from rich.console import Console

# Rows longer than the terminal are broken by the terminal: a name that is cut off helps nobody.
_WIDTH = 300


def stdout() -> Console:
    """For what was asked for."""
    return Console(width=_WIDTH, highlight=False)


def stderr() -> Console:
    """For what the user should know besides."""
    return Console(stderr=True, highlight=False, soft_wrap=True)
