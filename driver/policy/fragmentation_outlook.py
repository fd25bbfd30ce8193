"""What a node's free capacity is worth to the usual requests: both measures, remembered."""

from collections.abc import Sequence
from typing import NamedTuple

from driver.policy.fragmentation_ahead import MOST_ROOMS, Ahead
from driver.policy.fragmentation_loss import Loss
from driver.policy.fragmentation_wants import Room, Want


class Spoilt(NamedTuple):
    """How much of what is free is lost, in thousandths of a device: now, and in the end."""

    unusable: float
    left_over: float


class Outlook:
    """Judges the rooms of nodes with devices of one make."""

    def __init__(self, wants: Sequence[Want]) -> None:
        self._loss = Loss(wants)
        self._ahead = Ahead(wants)
        self._known: dict[Room, Spoilt] = {}

    def spoilt(self, room: Room) -> Spoilt:
        """What of this room is lost to the usual requests."""
        known = self._known.get(room)
        if known is None:
            if len(self._known) >= MOST_ROOMS:
                self._known.clear()
            known = Spoilt(self._loss.unusable(room), self._ahead.left_over(room))
            self._known[room] = known
        return known
