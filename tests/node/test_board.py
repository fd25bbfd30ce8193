"""The board: taints of several sources on the devices, shown when something has changed."""

import datetime as dt
from collections.abc import Sequence

import pytest
from msgspec import structs

from driver.model.resourceslice import Device, DeviceTaint
from driver.node.board import Board, card_name

DEVICES = [Device(name="gpu-0"), Device(name="gpu-1")]
ILL = DeviceTaint(key="d/unhealthy", value="xid-79", effect="NoSchedule")
CORDONED = DeviceTaint(key="d/cordoned", effect="NoSchedule")
OTHER = DeviceTaint(key="d/another", effect="NoSchedule")


class Wall:
    """What the board shows, and the time that passes."""

    def __init__(self) -> None:
        self.shown: list[Sequence[Device]] = []
        self.seconds = 0
        self.board = Board(self.shown.append, clock=self._now)

    def _now(self) -> dt.datetime:
        return dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=self.seconds)

    def taints(self, device: str = "gpu-0") -> list[DeviceTaint]:
        """The taints of a device as shown last, without their times."""
        [found] = [item for item in self.shown[-1] if item.name == device]
        return [structs.replace(taint, time_added=None) for taint in found.taints]

    def times(self, device: str = "gpu-0") -> list[str | None]:
        """When the taints were added."""
        [found] = [item for item in self.shown[-1] if item.name == device]
        return [taint.time_added for taint in found.taints]


@pytest.fixture
def wall() -> Wall:
    """A board of two cards."""
    made = Wall()
    made.board.devices(DEVICES)
    return made


def test_the_order_does_not_depend_on_who_speaks_first(wall: Wall) -> None:
    """The order is part of the slice: changing it would be a write."""
    wall.board.taints("health", {"gpu-0": (ILL, OTHER)})
    wall.board.taints("cordon", {"gpu-0": (CORDONED,)})
    first = wall.taints()
    again = Wall()
    again.board.taints("cordon", {"gpu-0": (CORDONED,)})
    again.board.taints("health", {"gpu-0": (OTHER, ILL)})
    assert again.shown == [], "nothing is known of the devices yet"
    again.board.devices(DEVICES)
    assert first == again.taints() == [CORDONED, OTHER, ILL]
    assert wall.taints("gpu-1") == []


def test_a_source_replaces_only_what_it_said_itself(wall: Wall) -> None:
    """Uncordoning a card does not heal it."""
    wall.board.taints("health", {"gpu-0": (ILL,)})
    wall.board.taints("cordon", {"gpu-0": (CORDONED,), "gpu-1": (CORDONED,)})
    wall.board.taints("cordon", {})
    assert wall.taints() == [ILL]
    assert wall.taints("gpu-1") == []


def test_only_changes_are_shown(wall: Wall) -> None:
    """Sources repeat themselves; every showing may become a write to the API server."""
    for _ in range(3):
        wall.board.devices(list(DEVICES))
        wall.board.taints("health", {"gpu-0": (ILL,)})
        wall.board.taints("cordon", {"gpu-7": (CORDONED,)})
        wall.seconds += 1
    assert len(wall.shown) == 2


def test_a_taint_keeps_its_time_until_it_goes(wall: Wall) -> None:
    """Pods that tolerate a taint for a time are evicted that long after it was added."""
    wall.board.taints("health", {"gpu-0": (ILL,)})
    wall.seconds = 5
    wall.board.taints("health", {"gpu-0": (ILL, OTHER), "gpu-1": (ILL,)})
    assert wall.times() == ["2026-01-01T00:00:05Z", "2026-01-01T00:00:00Z"]
    assert wall.times("gpu-1") == ["2026-01-01T00:00:05Z"]
    wall.board.taints("health", {})
    wall.seconds = 9
    wall.board.taints("health", {"gpu-0": (ILL,)})
    assert wall.times() == ["2026-01-01T00:00:09Z"]


def test_a_time_that_the_source_knows_is_left_alone(wall: Wall) -> None:
    """Health remembers over a restart since when a card is ill."""
    known = structs.replace(ILL, time_added="2025-12-31T23:00:00Z")
    wall.board.taints("health", {"gpu-0": (known,)})
    assert wall.times() == ["2025-12-31T23:00:00Z"]


def test_a_card_and_its_parts(wall: Wall) -> None:
    """What befalls a card befalls its MIG devices, but not the other way round."""
    part = Device(name="gpu-1-mig-1g.5gb-0", taints=(OTHER,))
    wall.board.devices([*DEVICES, part])
    wall.board.taints("health", {"gpu-1": (ILL,), part.name: (CORDONED,)})
    assert wall.taints(part.name) == [OTHER, ILL, CORDONED]
    assert wall.taints("gpu-1") == [ILL]
    assert card_name(part.name) == "gpu-1"
    assert card_name("gpu-11") == "gpu-11"
