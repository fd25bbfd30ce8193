"""Which errors are those of the caller: an option with a value that means nothing.

Files and clusters that are wrong are another matter: there the command line was right.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from driver.model.errors import QuadrantError


class UsageError(QuadrantError):
    """The program was called wrongly; it ends with 2."""


def expect_output(asked: str, known: Sequence[str]) -> None:
    """Refuse an `-o` that the command does not have; raises `UsageError`."""
    if asked not in known:
        raise UsageError(f"-o {asked!r}: expected one of {', '.join(known)}")


@contextmanager
def told_by(option: str) -> Iterator[None]:
    """Whatever is refused inside was told by this option: it becomes a `UsageError`."""
    try:
        yield
    except QuadrantError as error:
        raise UsageError(f"{option}: {error}") from error
