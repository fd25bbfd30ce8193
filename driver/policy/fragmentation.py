"""fragmentation: the choice that least spoils free capacity for the usual requests.

A node's free capacity counts for less when the usual requests cannot use it now
(`fragmentation_loss`), and when something would be left over after more of them
(`fragmentation_ahead`). What runs short for requests that depend on it (`fragmentation_scarcity`)
is priced by who knows what the whole cluster has left.
"""

from collections.abc import Mapping

import msgspec

from driver.model.allocation import Score, Term
from driver.policy import fullness
from driver.policy.fragmentation_outlook import Outlook, Spoilt
from driver.policy.fragmentation_wants import UNBOUNDED, Room, make, milli_free, same_make, wants
from driver.policy.mix import UNKNOWN, Mix
from driver.policy.view import Choice, DeviceView, NodeView

# What cannot be used now counts half of what is left over in the end.
_UNUSABLE_WEIGHT = 0.5
# Scores are in percent of a device, everything else in thousandths.
PERCENT = 0.1

_MOST_VIEWS = 2048


class _Part(msgspec.Struct, frozen=True):
    """The devices of one make on a node: how much is free of each, by index."""

    outlook: Outlook
    free: Mapping[int, int]
    spoilt: Spoilt


class _Before(msgspec.Struct, frozen=True):
    """A node before the choice."""

    view: NodeView
    cpu: int
    parts: tuple[_Part, ...]


class Fragmentation:
    """Both axes. Score = minus what the choice spoils, in percent of a device.

    Spoilt is half of what more the usual requests cannot use, and what more would be left over
    after further ones.
    """

    def __init__(self, mix: Mix | None = None) -> None:
        self._mix = mix or UNKNOWN
        self._outlooks: dict[str, Outlook] = {}
        self._seen: dict[int, _Before] = {}

    def score(self, view: NodeView, choice: Choice) -> Score:
        """How little the choice spoils."""
        before = self._before(view)
        after = {index: milli_free(full) for index, full in fullness.after(view, choice).items()}
        unusable = left_over = 0.0
        for part in before.parts:
            free = [after.get(index, left) for index, left in part.free.items()]
            spoilt = part.outlook.spoilt(_room(before.cpu - choice.cpu, free))
            unusable += spoilt.unusable - part.spoilt.unusable
            left_over += spoilt.left_over - part.spoilt.left_over
        return Score(
            (
                Term("capacity made unusable", -PERCENT * _UNUSABLE_WEIGHT * unusable),
                Term("capacity left over later", -PERCENT * left_over),
            )
        )

    def _before(self, view: NodeView) -> _Before:
        # All choices of a decision are on one view, and who compares many nodes may keep theirs.
        # Only the identity of a view is relied on, so it is held as long as it is known by it.
        known = self._seen.get(id(view))
        if known is None:
            if len(self._seen) >= _MOST_VIEWS:
                self._seen.clear()
            cpu = UNBOUNDED if view.cpu is None else view.cpu
            parts = tuple([self._part(cpu, same) for same in _by_make(view)])
            known = self._seen[id(view)] = _Before(view, cpu, parts)
        return known

    def _part(self, cpu: int, devices: list[DeviceView]) -> _Part:
        name = make(devices[0])
        outlook = self._outlooks.get(name)
        if outlook is None:
            outlook = self._outlooks[name] = Outlook(wants(self._mix, devices[0]))
        free = {device.index: milli_free(fullness.before(device)) for device in devices}
        return _Part(outlook, free, outlook.spoilt(_room(cpu, list(free.values()))))


def _room(cpu: int, free: list[int]) -> Room:
    return Room(cpu, tuple(sorted(filter(None, free))))


def _by_make(view: NodeView) -> list[list[DeviceView]]:
    """The devices of each make; what makes are worth together is not looked into."""
    found: list[list[DeviceView]] = []
    for device in view.devices:
        same = next((one for one in found if same_make(device, one[0])), None)
        if same is None:
            found.append([device])
        else:
            same.append(device)
    return found
