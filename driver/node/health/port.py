"""What hardware says of its health, and the port through which it is heard.

Knows nothing of what follows from it: that is `driver.node.health.card`.
"""

from typing import Protocol, runtime_checkable

import msgspec

from driver.node.card import Card
from driver.node.errors import NodeError

# What a card says that it needs when it needs nothing.
NO_RECOVERY = "none"


class Xid(msgspec.Struct, frozen=True, kw_only=True):
    """An error that the kernel driver has reported of a card; None: it does not say which."""

    index: int | None
    number: int


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """One look at one card. What it cannot tell is None."""

    # The number that the card has on its node (`Card.index`).
    index: int
    # Why it does not answer; then nothing else is known.
    lost: str | None = None
    # Uncorrected ECC errors since the card was reset or its driver loaded.
    uncorrected: int | None = None
    # A row of memory could not be replaced by a spare one.
    remap_failed: bool = False
    # What the card says it needs before it is used again: NO_RECOVERY, or such as "gpu-reset".
    recovery: str | None = None
    # Whether XIDs of this card are heard at all.
    has_events: bool = True


class SourceFailedError(NodeError):
    """Hardware as a whole does not answer; the source must be closed and opened anew."""


class HealthSource(Protocol):
    """An open line to the cards. Blocks, and is used by one thread only.

    Every method may raise `SourceFailedError`.
    """

    def wait(self, seconds: float) -> tuple[Xid, ...] | None:
        """What has been reported since the last call, as soon as there is something.

        () means that something else has happened which a reading will show; None that nothing
        has in all the time.
        """
        ...

    def read(self) -> tuple[Reading, ...]:
        """One reading of every card that there was when the source was made."""
        ...

    def close(self) -> None:
        """Let go; raises nothing."""
        ...


@runtime_checkable
class WatchedInventory(Protocol):
    """An inventory whose hardware can be asked how it is; one without this is not watched."""

    def health(self, cards: tuple[Card, ...]) -> HealthSource:
        """A new open line to these cards; may block, and raise `SourceFailedError`."""
        ...
