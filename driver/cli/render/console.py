"""Where output goes: results to stdout, words about them to stderr; no colour where it is unwanted.

`NO_COLOR` and output that is no terminal switch colour off (rich does that).
"""

import sys

from rich.console import Console

# Wide enough for a UUID in a table when the output is a pipe.
_PIPE_WIDTH = 160


def stdout() -> Console:
    """For what was asked for."""
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    return Console(width=width, highlight=False, soft_wrap=False)


def stderr() -> Console:
    """For what the user should know besides."""
    return Console(stderr=True, highlight=False, soft_wrap=True)
