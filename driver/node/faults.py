"""The places where a crash would hurt most, by name, so that tests can crash at every one.

In production nothing happens there.
"""

from collections.abc import Callable
from enum import StrEnum


class FaultPoint(StrEnum):
    """Each is just before or after a step that reaches the disk."""

    BEFORE_APPEND = "before a checkpoint write"
    BEFORE_SYNC = "checkpoint written, not synced"
    AFTER_SYNC = "checkpoint synced, callers not told"
    COMPACTED = "compacted checkpoint written, not in place"
    CDI_WRITTEN = "CDI file written under its temporary name"
    CDI_IN_PLACE = "CDI file in place, checkpoint does not say so"
    CDI_REMOVED = "CDI file removed, claim still in the checkpoint"
    PART_BEGUN = "checkpoint says that a part of a card is begun, nothing is made"
    PART_MADE = "part of a card made, its UUID in no file"
    PART_REMOVED = "part of a card removed, claim still in the checkpoint"
    BEFORE_ANSWER = "all done, kubelet not answered"


Reach = Callable[[FaultPoint], None]


def pass_by(_point: FaultPoint) -> None:
    """Go on: what happens at a fault point outside of tests."""
