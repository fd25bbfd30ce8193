"""The parts of the fragmentation policy: what is lost now, what in the end, what is scarce."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.model.names import MEMORY
from driver.policy.fragmentation_ahead import Ahead
from driver.policy.fragmentation_loss import Loss
from driver.policy.fragmentation_scarcity import Scarcity
from driver.policy.fragmentation_wants import UNBOUNDED, Room, Want, milli_free, wants
from driver.policy.mix import Mix, Shape
from tests.policy.views import gpu

ONE = Want(number=1, weight=1, cpu=1000, devices=1, milli=1000)
HALF = ONE._replace(milli=500)
PAIR = ONE._replace(devices=2)
CPU_ONLY = ONE._replace(devices=0, milli=0)
NEVER = ONE._replace(cpu=UNBOUNDED + 1)
SHARE = ONE._replace(milli=300)


@pytest.mark.parametrize(
    ("room", "want", "expected"),
    [
        pytest.param(Room(9000, (1000, 1000)), ONE, 0, id="all is usable"),
        pytest.param(Room(9000, (600, 1000)), ONE, 600, id="a rest is not"),
        pytest.param(Room(9000, (600, 1000)), HALF, 0, id="but for a half it is"),
        pytest.param(Room(9000, (300, 400)), HALF, 700, id="two small rests"),
        pytest.param(Room(9000, (600, 1000)), PAIR, 1600, id="one place of two"),
        pytest.param(Room(999, (1000,)), ONE, 1000, id="too little CPU"),
        pytest.param(Room(9000, (1000,)), CPU_ONLY, 1000, id="a request without a device"),
        pytest.param(Room(9000, (1000,)), NEVER, 1000, id="one for another make"),
        pytest.param(Room(9000, ()), ONE, 0, id="nothing is free"),
    ],
)
def test_unusable_capacity(room: Room, want: Want, expected: float) -> None:
    """As the source of the formula counts it."""
    assert Loss([want]).unusable(room) == pytest.approx(expected)


ROOMS = st.builds(
    lambda cpu, free: Room(cpu, tuple(sorted(free))),
    st.integers(0, 20000),
    st.lists(st.integers(1, 1000), max_size=8),
)
WANTS = st.lists(st.sampled_from([ONE, HALF, PAIR, CPU_ONLY, NEVER, SHARE]), min_size=1, max_size=6)


@given(ROOMS, WANTS)
def test_unusable_capacity_is_that_of_the_formula(room: Room, mix: list[Want]) -> None:
    """The quick way gives what the plain formula gives."""
    total = sum(room.free)
    plain = 0.0
    for want in mix:
        fitting = [one for one in room.free if one >= want.milli]
        runs = want.devices and want.cpu <= room.cpu and len(fitting) >= want.devices
        plain += want.weight * (total - sum(fitting) if runs else total)
    assert Loss(mix).unusable(room) == pytest.approx(plain)


@given(ROOMS, WANTS)
def test_left_over_is_a_part_of_what_is_free(room: Room, mix: list[Want]) -> None:
    """Never below nothing, never more than there is, and always the same."""
    even = [want._replace(number=1 / len(mix)) for want in mix]
    left = Ahead(even).left_over(room)
    assert 0 <= left <= sum(room.free)
    assert left == Ahead(even).left_over(room)


@pytest.mark.parametrize(
    ("room", "want", "expected"),
    [
        pytest.param(Room(9000, (1000, 1000)), ONE, 0, id="all will be used"),
        pytest.param(Room(1500, (1000, 1000)), ONE, 1000, id="CPU for one"),
        pytest.param(Room(9000, (1000,)), SHARE, 100, id="three thirds and a rest"),
        pytest.param(Room(9000, (1000, 1000, 1000)), PAIR, 1000, id="an odd one"),
        pytest.param(Room(9000, (1000,)), NEVER, 1000, id="nobody who can use it"),
        pytest.param(Room(9000, (1000,)), CPU_ONLY, 1000, id="nobody who wants it"),
    ],
)
def test_left_over(room: Room, want: Want, expected: float) -> None:
    """With one kind of request there is nothing to draw."""
    assert Ahead([want]).left_over(room) == expected


def test_wants_add_up() -> None:
    """Shares of all requests and of all capacity both add to one; so does their mean."""
    mix = Mix(
        (
            Shape(weight=6, amounts={MEMORY: 25}),
            Shape(weight=1, count=8),
            Shape(weight=3, count=0, cpu=500),
        )
    )
    found = wants(mix, gpu(0, shareable=True))
    assert [one.number for one in found] == pytest.approx([0.6, 0.1, 0.3])
    # Of 9.5 devices that ten requests ask for, eight are asked for by one.
    assert [one.weight for one in found] == pytest.approx(
        [(0.6 + 1.5 / 9.5) / 2, (0.1 + 8 / 9.5) / 2, 0.15]
    )
    assert [one.milli for one in found] == [250, 1000, 0]


def test_what_cannot_run_on_a_make() -> None:
    """Another model, or more than a device has."""
    mix = Mix((Shape(weight=1, models=frozenset({"big"})), Shape(weight=1, amounts={MEMORY: 101})))
    assert [one.runs for one in wants(mix, gpu(0, shareable=True))] == [False, False]


@pytest.mark.parametrize(("full", "free"), [(0, 1000), (1, 0), (0.3, 700), (0.99999, 0)])
def test_free_is_rounded_down(full: float, free: int) -> None:
    """So that what is said to fit does; noise of fractions takes nothing away."""
    assert milli_free(full) == free


def test_a_make_that_is_asked_for_by_name_costs() -> None:
    """Half of all requests want `big`, of which there is as much as of `small`."""
    anyone, named = ONE._replace(number=0.5), ONE._replace(number=0.5)
    scarcity = Scarcity({"big": [anyone, named], "small": [anyone, named._replace(cpu=NEVER.cpu)]})
    prices = scarcity.prices({(1, "big"): 10_000, (1, "small"): 10_000})
    # Ten more of all requests will name it, and ten devices are left of it.
    assert prices == pytest.approx({(1, "big"): 1.0})
    prices = scarcity.prices({(1, "big"): 30_000, (1, "small"): 10_000})
    assert prices == pytest.approx({(1, "big"): 2 / 3})


def test_places_for_many_devices_cost_when_they_run_short() -> None:
    """One in five requests wants a pair, one third of the capacity."""
    mix = [ONE._replace(number=0.8), PAIR._replace(number=0.2)]
    scarcity = Scarcity({"any": mix})
    # 12 devices are left for 10 requests, 2 of them pairs.
    plenty = scarcity.prices({(1, "any"): 12_000, (2, "any"): 6})
    short = scarcity.prices({(1, "any"): 12_000, (2, "any"): 2})
    assert plenty == pytest.approx({(2, "any"): 1000 / 9})
    assert short == pytest.approx({(2, "any"): 1000})


def test_what_a_choice_takes() -> None:
    """Less capacity; and a place for a pair less, when an idle device is opened or CPU is short."""
    scarcity = Scarcity({"any": [PAIR]})
    before = Room(2000, (1000, 1000, 1000, 1000))
    opened = Room(2000, (500, 1000, 1000, 1000))
    assert dict(scarcity.taken("any", before, opened)) == {(1, "any"): 500, (2, "any"): 1}
    assert dict(scarcity.taken("any", before, before._replace(cpu=1000))) == {(2, "any"): 1}
    assert scarcity.taken("any", before, before) == ()
