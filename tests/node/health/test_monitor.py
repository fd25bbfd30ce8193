"""The monitor: a thread that listens to hardware, and what is known of the cards meanwhile."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from driver.node.health.card import Rules
from driver.node.health.listener import Pace
from driver.node.health.memory import Memory
from driver.node.health.monitor import Monitor
from driver.node.health.port import HealthSource, Reading, SourceFailedError, Xid
from driver.node.health.simulated import SimulatedHealth, faults
from driver.node.health.verdict import status
from driver.node.simulated import cards

CARDS = cards("4xT4", "n1")
FIRST, SECOND = 0, 1
FAST = Pace(look=0.02, wait=0.01, again=0.01, deaf=30.0)


class Hardware:
    """Hardware that a test has in its hand; every opening makes a new line to it."""

    def __init__(self) -> None:
        self.events: list[Xid] = []
        self.broken = ""
        self.opened = self.closed = 0
        self.answers = threading.Event()
        self.answers.set()

    def connect(self) -> HealthSource:
        """Open it."""
        self._work()
        self.opened += 1
        return self

    def wait(self, seconds: float) -> tuple[Xid, ...] | None:
        """What was reported."""
        self._work()
        threading.Event().wait(seconds)
        found, self.events = tuple(self.events), []
        return found or None

    def read(self) -> tuple[Reading, ...]:
        """All cards are well."""
        self._work()
        return tuple(Reading(index=card.index) for card in CARDS)

    def close(self) -> None:
        """Let go."""
        self.closed += 1

    def _work(self) -> None:
        self.answers.wait()
        if self.broken:
            raise SourceFailedError(self.broken)


def monitor(
    folder: Path, connect: Callable[[], HealthSource], *, pace: Pace = FAST, boot: str = "b1"
) -> Monitor:
    """A monitor of four cards."""
    memory = Memory(folder / "health.json", boot=boot)
    return Monitor(CARDS, connect, memory, rules=Rules(), pace=pace)


@asynccontextmanager
async def running(made: Monitor) -> AsyncIterator[Monitor]:
    """The monitor at work."""
    task = asyncio.ensure_future(made.run())
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something holds; a test that waits for ever fails by this limit."""
    async with asyncio.timeout(15):
        while not condition():  # noqa: ASYNC110  (the thread tells the monitor, not us)
            await asyncio.sleep(0.01)


def words(made: Monitor) -> list[str]:
    """How the four cards are."""
    return [status(card) for card in made.cards.values()]


async def test_cards_are_read_and_events_heard(tmp_path: Path) -> None:
    """An XID that names no card is held against all of them."""
    hardware = Hardware()
    async with running(monitor(tmp_path, hardware.connect)) as made:
        assert words(made) == ["Unknown"] * 4
        await until(lambda: words(made) == ["Healthy"] * 4)
        hardware.events = [Xid(index=SECOND, number=79), Xid(index=7, number=79)]
        await until(lambda: words(made) == ["Healthy", "Unhealthy", "Healthy", "Healthy"])
        hardware.events = [Xid(index=None, number=74)]
        await until(lambda: words(made) == ["Unhealthy"] * 4)
    await until(lambda: hardware.closed == 1)


async def test_hardware_that_fails_is_opened_anew(tmp_path: Path) -> None:
    """A driver that is replaced under the running plugin."""
    hardware = Hardware()
    async with running(monitor(tmp_path, hardware.connect)) as made:
        await until(lambda: words(made) == ["Healthy"] * 4)
        hardware.broken = "driver not loaded"
        await until(lambda: words(made) == ["Unknown"] * 4)
        assert made.cards[FIRST].problems[0].message == "driver not loaded"
        hardware.broken = ""
        await until(lambda: words(made) == ["Healthy"] * 4)
        assert (hardware.opened, hardware.closed) == (2, 1)


async def test_hardware_that_hangs_holds_nothing_up(tmp_path: Path) -> None:
    """A call into the driver that does not come back: the loop goes on and says so."""
    hardware = Hardware()
    pace = Pace(look=0.02, wait=0.01, again=0.01, deaf=0.1)
    async with running(monitor(tmp_path, hardware.connect, pace=pace)) as made:
        await until(lambda: words(made) == ["Healthy"] * 4)
        hardware.answers.clear()
        await until(lambda: words(made) == ["Unknown"] * 4)
        assert "has not answered" in made.cards[FIRST].problems[0].message
        hardware.answers.set()
        await until(lambda: words(made) == ["Healthy"] * 4)


async def test_problems_survive_the_plugin_but_not_the_machine(tmp_path: Path) -> None:
    """The driver reports an XID once; a reboot resets the card."""
    hardware = Hardware()
    async with running(monitor(tmp_path, hardware.connect)) as made:
        hardware.events = [Xid(index=FIRST, number=79)]
        await until(lambda: words(made)[0] == "Unhealthy")
        await until((tmp_path / "health.json").exists)
        since = made.cards[FIRST].problems[0].since
    again = monitor(tmp_path, hardware.connect)
    assert words(again) == ["Unhealthy", "Unknown", "Unknown", "Unknown"]
    assert again.cards[FIRST].problems[0].since == since
    assert words(monitor(tmp_path, hardware.connect, boot="b2")) == ["Unknown"] * 4
    (tmp_path / "health.json").write_bytes(b"\xff{")
    assert words(monitor(tmp_path, hardware.connect)) == ["Unknown"] * 4


async def test_a_disk_that_is_full_does_not_stop_the_monitor(tmp_path: Path) -> None:
    """What is known now matters more than what will be known after a restart."""
    hardware = Hardware()
    made = monitor(tmp_path / "absent", hardware.connect)
    async with running(made):
        hardware.events = [Xid(index=FIRST, number=79)]
        await until(lambda: words(made)[0] == "Unhealthy")
        await until(lambda: words(made)[1] == "Healthy")


async def test_an_ill_card_is_not_written_down_at_every_look(tmp_path: Path) -> None:
    """Disks wear out, and each write is waited for."""
    hardware = Hardware()
    async with running(monitor(tmp_path, hardware.connect)) as made:
        hardware.events = [Xid(index=FIRST, number=79)]
        await until((tmp_path / "health.json").exists)
        written = (tmp_path / "health.json").stat().st_ino
        before = made.cards[FIRST].known_at or 0.0
        await until(lambda: (made.cards[FIRST].known_at or 0.0) > before + 0.2)
        assert (tmp_path / "health.json").stat().st_ino == written


async def test_simulated_faults_come_and_go_with_their_lines(tmp_path: Path) -> None:
    """What the documentation tells people to try."""
    file = tmp_path / "faults"
    file.write_text("gpu-2 xid 63\n\ngpu-0 ecc 2\ngpu-1 lost\n")
    async with running(monitor(tmp_path, lambda: SimulatedHealth(CARDS, file))) as made:
        await until(lambda: words(made) == ["Unhealthy"] * 3 + ["Healthy"])
        file.write_text("gpu-3 xid 79\n")
        await until(lambda: words(made)[3] == "Unhealthy" and words(made)[0] == "Healthy")
        file.unlink()
        await until(lambda: words(made)[3] == "Healthy")
        reasons = [problem.reason for card in made.cards.values() for problem in card.problems]
        assert reasons == ["lost", "xid-63"], "these end after a time only"


def test_lines_that_say_nothing() -> None:
    """They are complained about, and the others count."""
    text = "gpu-0 lost\ngpu-9 lost\ngpu-0 xid\ngpu-0 lost 3\ngpu-0 burns\ngpu-1  ecc  4"
    found = faults(text, {"gpu-0", "gpu-1"})
    assert {(fault.name, fault.what, fault.number) for fault in found} == {
        ("gpu-0", "lost", 0),
        ("gpu-1", "ecc", 4),
    }
