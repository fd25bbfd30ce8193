"""Health through the real bindings and the fake library: events, counters, cards that go."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from driver.node.card import Card
from driver.node.health import card as health
from driver.node.health.port import HealthSource, Reading, SourceFailedError, Xid
from driver.node.nvidia import events
from driver.node.nvidia.events import NvmlHealth
from driver.node.nvidia.inventory import NvmlInventory
from tests.node.conftest import Boot
from tests.node.nvml import fake

OPEN_FAILS = "nvmlInitWithFlags 9\nnvmlInit_v2 9\n"


@pytest.fixture
def machine(boot: Boot) -> fake.FakeMachine:
    """Four T4."""
    return boot("t4x4")


@pytest.fixture
def cards(machine: fake.FakeMachine, tmp_path: Path) -> tuple[Card, ...]:
    """As discovery finds them."""
    return NvmlInventory(sys=tmp_path, proc=tmp_path).cards()


@pytest.fixture
def source(cards: tuple[Card, ...]) -> Iterator[HealthSource]:
    """The open line."""
    made = NvmlHealth(cards)
    yield made
    made.close()


def test_xids_name_their_card(machine: fake.FakeMachine, source: HealthSource) -> None:
    """One at a time, as NVML delivers them; without one there is nothing after the time."""
    assert source.wait(0.01) is None
    machine.event(2, fake.XID, 79)
    machine.event(0, fake.XID, 31)
    assert source.wait(1) == (Xid(index=2, number=79),)
    assert source.wait(1) == (Xid(index=0, number=31),)
    assert source.wait(0.01) is None


def test_memory_errors_wake_and_are_counted(
    machine: fake.FakeMachine, source: HealthSource
) -> None:
    """The event says when to look; the counter says how many, and falls with a reset."""
    assert [reading.uncorrected for reading in source.read()] == [0, 0, 0, 0]
    machine.write(1, "ecc", "7 3 9 5")
    machine.event(1, fake.DOUBLE_BIT_ECC)
    assert source.wait(1) == ()
    assert [reading.uncorrected for reading in source.read()] == [0, 3, 0, 0]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (None, None),
        ("0", "none"),
        ("1", "gpu-reset"),
        ("4", "drain-and-reset"),
        ("99", "other-99"),
    ],
)
def test_what_a_card_asks_for(
    machine: fake.FakeMachine, source: HealthSource, said: str | None, expected: str | None
) -> None:
    """Older drivers do not tell; a newer one may know more than we do."""
    if said is not None:
        machine.write(0, "recovery", said)
    assert source.read()[0].recovery == expected


def test_rows_that_cannot_be_remapped(machine: fake.FakeMachine, source: HealthSource) -> None:
    """Only the failure counts: a pending remapping lets new programs run."""
    machine.write(0, "rows", "1 1 1 0")
    machine.write(1, "rows", "1 1 0 1")
    assert [reading.remap_failed for reading in source.read()] == [False, True, False, False]


def test_a_card_that_is_lost_and_comes_back(
    machine: fake.FakeMachine, source: HealthSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others answer meanwhile; the library is opened anew, and then hears of it again."""
    machine.errors(1, {"*": fake.LOST})
    readings = source.read()
    assert [reading.lost is not None for reading in readings] == [False, True, False, False]
    monkeypatch.setattr(events, "_REOPEN_S", 0.0)
    source.read()
    machine.errors(1, {})
    source.read()
    assert source.read()[1] == Reading(index=1, uncorrected=0)
    machine.event(1, fake.XID, 48)
    assert source.wait(1) == (Xid(index=1, number=48),)


@pytest.mark.parametrize("code", [fake.LOST, 999])
def test_events_that_fail_do_not_keep_from_looking(
    machine: fake.FakeMachine, source: HealthSource, code: int
) -> None:
    """One card that is lost makes NVML fail for all of them."""
    (machine.state / "errors").write_text(f"nvmlEventSetWait_v2 {code}\n")
    assert source.wait(0.01) == ()
    assert [reading.lost for reading in source.read()] == [None] * 4


def test_a_card_that_was_lost_at_discovery(boot: Boot, tmp_path: Path) -> None:
    """It has no UUID then; the source asks for it all the same."""
    boot("broken")
    cards = NvmlInventory(sys=tmp_path, proc=tmp_path).cards()
    source = NvmlHealth(cards)
    try:
        assert [reading.lost is not None for reading in source.read()][:2] == [False, True]
    finally:
        source.close()


def test_a_card_that_reports_no_events(machine: fake.FakeMachine, cards: tuple[Card, ...]) -> None:
    """It is looked at only, and that is said."""
    machine.errors(3, {"nvmlDeviceRegisterEvents": 3})
    source = NvmlHealth(cards)
    try:
        assert [reading.has_events for reading in source.read()] == [True, True, True, False]
    finally:
        source.close()


@pytest.mark.parametrize(
    "use", [lambda source: source.wait(0.01), lambda source: source.read()], ids=["wait", "read"]
)
def test_a_library_that_gives_up(
    machine: fake.FakeMachine, source: HealthSource, use: Callable[[HealthSource], object]
) -> None:
    """The driver is unloaded under the open library."""
    for index in range(4):
        machine.errors(index, {"*": 9})
    (machine.state / "errors").write_text("nvmlEventSetWait_v2 9\n")
    with pytest.raises(SourceFailedError, match="NVML"):
        use(source)


def test_a_library_that_cannot_be_opened(
    machine: fake.FakeMachine, cards: tuple[Card, ...]
) -> None:
    """Said with the reason."""
    (machine.state / "errors").write_text(OPEN_FAILS)
    with pytest.raises(SourceFailedError, match="cannot be opened"):
        NvmlHealth(cards)


def test_from_an_event_to_its_end(machine: fake.FakeMachine, source: HealthSource) -> None:
    """A card with a driver of today: XID 95, it asks for a reset, is reset, is well."""
    machine.write(0, "recovery", "0")
    rules, state = health.Rules(), health.CardHealth()
    state = health.after_reading(state, source.read()[0], 0, rules)
    machine.write(0, "recovery", "1")
    machine.event(0, fake.XID, 95)
    [xid] = source.wait(1) or ()
    state = health.after_xid(state, xid.number, 1, rules)
    state = health.after_reading(state, source.read()[0], 1, rules)
    assert [problem.reason for problem in state.problems] == ["needs-gpu-reset", "xid-95"]
    machine.write(0, "recovery", "0")
    state = health.after_reading(state, source.read()[0], 2, rules)
    assert state.problems == ()
