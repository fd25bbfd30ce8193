"""What is being done, and how long does it take? Must not decide anything."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


def say(text: str) -> None:
    """Print one line for the person who waits; results go to stdout, this goes to stderr."""
    print(text, file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """A length of time as a person says it: ``4.2 s``, ``3 min 20 s``."""
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


@contextmanager
def step(text: str) -> Iterator[None]:
    """Tell that a step ended and how long it took; a failed one tells nothing."""
    begin = time.monotonic()
    yield
    say(f"  {text}: {duration(time.monotonic() - begin)}")
