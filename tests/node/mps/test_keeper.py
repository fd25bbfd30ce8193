"""MPS daemons: kept while they are wanted, whatever happens to them or to the keeper."""

import asyncio
import errno
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from driver.node.mps import keeper
from driver.node.mps.daemon import PROGRAM, Daemon
from driver.node.mps.folder import DaemonState, MpsFolder, WantedDaemon
from driver.node.mps.keeper import Keeper
from driver.node.nvidia.control import NvmlControl
from driver.node.nvidia.inventory import NvmlInventory
from tests.node.conftest import Boot
from tests.node.nvml import fake

WITHIN_S = 20.0
EXCLUSIVE, DEFAULT = "3", "0"


@pytest.fixture
def machine(boot: Boot) -> fake.FakeMachine:
    """A machine with four T4."""
    return boot("t4x4")


@pytest.fixture
def folder(machine: fake.FakeMachine, tmp_path: Path) -> MpsFolder:
    """The folder between plugin and keeper; no daemon is left at the end."""
    found = MpsFolder(tmp_path / "mps")
    found.create()
    return found


@pytest.fixture
def cards(machine: fake.FakeMachine) -> list[str]:
    """UUIDs in the order of the index."""
    return [card.uuid for card in NvmlInventory().cards()]


@asynccontextmanager
async def keeping(folder: MpsFolder) -> AsyncIterator[None]:
    """A keeper that lives as long as this lasts."""
    task = asyncio.ensure_future(Keeper(folder, NvmlControl()).run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(met: Callable[[], bool]) -> None:
    """Wait until it is so."""
    async with asyncio.timeout(WITHIN_S):
        while not met():  # noqa: ASYNC110  (processes send no events)
            await asyncio.sleep(0.05)


def ready(folder: MpsFolder, name: str) -> bool:
    """Whether a daemon answers and knows what is wanted now."""
    state, wanted = folder.state(name), folder.wanted(name)
    return state is not None and wanted is not None and state.ready == wanted.version()


def pid(folder: MpsFolder, name: str) -> int:
    """The daemon's process."""
    return int((folder.path / name / "pipe" / f"{PROGRAM}.pid").read_text())


def told(folder: MpsFolder, name: str) -> list[str]:
    """What the daemon was told or asked, from its first start on."""
    return (folder.path / name / "log" / "control.log").read_text().splitlines()


def mode(machine: fake.FakeMachine, card: int) -> str:
    """A card's compute mode."""
    return machine.setting(card, "compute-mode")


def alive(process: int) -> bool:
    """Whether there is such a process."""
    return Path(f"/proc/{process}").exists()


async def give_up(folder: MpsFolder, *names: str) -> None:
    """Have no daemon left."""
    for name in names:
        folder.unwant(name)
    await until(lambda: not list(folder.known()))


async def test_a_daemon_lives_while_it_is_wanted(
    folder: MpsFolder, cards: list[str], machine: fake.FakeMachine
) -> None:
    """On its card, which nobody else may use meanwhile; with limits; and it leaves nothing."""
    async with keeping(folder):
        folder.want("a", WantedDaemon(cards=(cards[1],), threads=40, memory_limits=(4 << 30,)))
        await until(lambda: ready(folder, "a"))
        start, *commands = told(folder, "a")
        assert json.loads(start.split(" ", 2)[2]) == {
            "CUDA_MPS_LOG_DIRECTORY": str(folder.path / "a" / "log"),
            "CUDA_MPS_PIPE_DIRECTORY": str(folder.path / "a" / "pipe"),
            "CUDA_VISIBLE_DEVICES": cards[1],
        }
        assert "set_default_active_thread_percentage 40" in commands
        assert "set_default_device_pinned_mem_limit 0 4096M" in commands
        assert [mode(machine, card) for card in (0, 1)] == [DEFAULT, EXCLUSIVE]
        process = pid(folder, "a")
        await give_up(folder, "a")
        assert not alive(process)
        assert mode(machine, 1) == DEFAULT


async def test_new_limits_reach_a_daemon_that_runs(folder: MpsFolder, cards: list[str]) -> None:
    """It is not started again for them."""
    async with keeping(folder):
        folder.want("a", WantedDaemon(cards=(cards[0],), threads=30))
        await until(lambda: ready(folder, "a"))
        process = pid(folder, "a")
        folder.want("a", WantedDaemon(cards=(cards[0],), threads=60))
        await until(lambda: ready(folder, "a"))
        assert "set_default_active_thread_percentage 60" in told(folder, "a")
        assert pid(folder, "a") == process
        await give_up(folder, "a")


async def test_a_daemon_that_dies_is_started_again(folder: MpsFolder, cards: list[str]) -> None:
    """Its limits are told anew, and the state says how often that was."""
    async with keeping(folder):
        folder.want("a", WantedDaemon(cards=tuple(cards[:2]), threads=50))
        await until(lambda: ready(folder, "a"))
        process = pid(folder, "a")
        os.kill(process, signal.SIGKILL)
        await until(lambda: not ready(folder, "a"))
        await until(lambda: ready(folder, "a"))
        assert pid(folder, "a") != process
        state = folder.state("a")
        assert state is not None
        assert state.restarts == 1
        assert told(folder, "a").count("set_default_active_thread_percentage 50") == 2
        await give_up(folder, "a")


async def test_the_next_keeper_takes_over(
    folder: MpsFolder, cards: list[str], machine: fake.FakeMachine
) -> None:
    """What is wanted goes on undisturbed; what was given up meanwhile ends."""
    async with keeping(folder):
        for name, card in (("a", cards[0]), ("b", cards[1])):
            folder.want(name, WantedDaemon(cards=(card,)))
        await until(lambda: ready(folder, "a") and ready(folder, "b"))
        processes = [pid(folder, name) for name in ("a", "b")]
    assert not folder.is_kept()
    assert all(alive(process) for process in processes)
    folder.unwant("b")
    async with keeping(folder):
        await until(lambda: list(folder.known()) == ["a"] and ready(folder, "a"))
        assert pid(folder, "a") == processes[0]
        assert [mode(machine, card) for card in (0, 1)] == [EXCLUSIVE, DEFAULT]
        await give_up(folder, "a")


async def test_a_daemon_that_is_given_up_ends_before_the_next_on_its_card(
    folder: MpsFolder, cards: list[str], machine: fake.FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would set the card back under the one that has begun there."""
    async with keeping(folder):
        folder.want("b", WantedDaemon(cards=tuple(cards[:2])))
        await until(lambda: ready(folder, "b"))
        process = pid(folder, "b")
    folder.unwant("b")
    folder.want("a", WantedDaemon(cards=(cards[1],)))
    end, start = Daemon.end, Daemon.start
    lived: list[bool] = []

    async def slow(daemon: Daemon) -> None:
        state = None
        while state is None or not state.error:
            await asyncio.sleep(0.05)
            state = folder.state("a")
        await end(daemon)

    async def watched(daemon: Daemon, on: tuple[str, ...]) -> None:
        lived.append(alive(process))
        await start(daemon, on)

    async with keeping(folder):
        with monkeypatch.context() as patch:
            patch.setattr(Daemon, "end", slow)
            patch.setattr(Daemon, "start", watched)
            await until(lambda: ready(folder, "a"))
        assert lived == [False]
        assert [mode(machine, card) for card in (0, 1)] == [DEFAULT, EXCLUSIVE]
        await give_up(folder, "a")


async def test_a_full_disk_ends_neither_keeper_nor_daemons(
    folder: MpsFolder, cards: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be written is tried again: of one that begins, one that runs, one that ends."""
    monkeypatch.setattr(keeper, "_RETRY_LAST_S", 0.2)
    refused: list[str] = []

    def full(path: Path, _data: bytes) -> None:
        refused.append(path.parent.name)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    async with keeping(folder):
        for name, card in (("runs", cards[0]), ("ends", cards[1])):
            folder.want(name, WantedDaemon(cards=(card,)))
        await until(lambda: ready(folder, "runs") and ready(folder, "ends"))
        processes = [pid(folder, name) for name in ("runs", "ends")]
        folder.want("begins", WantedDaemon(cards=(cards[2],)))
        folder.want("runs", WantedDaemon(cards=(cards[0],), threads=20))
        folder.unwant("ends")
        with monkeypatch.context() as patch:
            patch.setattr("driver.node.mps.folder.replace_file", full)
            await until(lambda: all(refused.count(n) > 1 for n in ("begins", "runs", "ends")))
            assert folder.is_kept()
            assert all(alive(process) for process in processes)
        await until(lambda: ready(folder, "runs") and ready(folder, "begins"))
        await until(lambda: set(folder.known()) == {"runs", "begins"})
        assert pid(folder, "runs") == processes[0]
        assert not alive(processes[1])
        await give_up(folder, "runs", "begins")


async def test_one_keeper_at_a_time(folder: MpsFolder, cards: list[str]) -> None:
    """A second one waits for the end of the first."""
    async with keeping(folder), keeping(folder):
        folder.want("a", WantedDaemon(cards=(cards[0],)))
        await until(lambda: ready(folder, "a"))
        assert len([line for line in told(folder, "a") if line.startswith("start")]) == 1
        await give_up(folder, "a")


async def test_what_keeps_a_daemon_from_working_is_told(
    folder: MpsFolder, cards: list[str], machine: fake.FakeMachine
) -> None:
    """In the state, for whoever waits; it works as soon as the reason is gone."""
    machine.errors(0, {"nvmlDeviceSetComputeMode": 4})
    async with keeping(folder):
        folder.want("a", WantedDaemon(cards=(cards[0],)))
        await until(lambda: bool((state := folder.state("a")) and state.error))
        state = folder.state("a")
        assert state is not None
        assert "compute mode exclusive-process" in state.error
        machine.errors(0, {})
        await until(lambda: ready(folder, "a"))
        await give_up(folder, "a")


async def test_a_daemon_that_ends_is_ready_for_nobody(
    folder: MpsFolder, cards: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who wants it again before it has ended waits for the next one."""
    end = Daemon.end
    states: list[DaemonState | None] = []

    async def watched(daemon: Daemon) -> None:
        states.append(folder.state("a"))
        await end(daemon)

    monkeypatch.setattr(Daemon, "end", watched)
    async with keeping(folder):
        folder.want("a", WantedDaemon(cards=(cards[0],)))
        await until(lambda: ready(folder, "a"))
        await give_up(folder, "a")
    assert [state.ready for state in states if state is not None] == [""]


async def test_a_lost_card_does_not_keep_its_daemon(
    folder: MpsFolder, cards: list[str], machine: fake.FakeMachine
) -> None:
    """Who waits for its end is a pod that wants to go."""
    async with keeping(folder):
        folder.want("a", WantedDaemon(cards=(cards[0],)))
        await until(lambda: ready(folder, "a"))
        machine.errors(0, {"*": fake.LOST})
        await give_up(folder, "a")


async def test_as_a_process_it_ends_tidily(
    folder: MpsFolder, cards: list[str], machine: fake.FakeMachine
) -> None:
    """`quadrant mps` keeps daemons, and leaves them alone when it is told to end."""
    folder.want("a", WantedDaemon(cards=(cards[0],)))
    command = [sys.executable, "-m", "driver.cli", "mps", f"--mps-dir={folder.path}"]
    process = await asyncio.create_subprocess_exec(*command)
    try:
        await until(lambda: ready(folder, "a"))
    finally:
        process.terminate()
        assert await process.wait() == 0
    assert alive(pid(folder, "a"))
    async with keeping(folder):
        await give_up(folder, "a")
