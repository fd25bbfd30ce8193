"""Is a process still the one that was started?"""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from hack.kubernetes import process


@pytest.mark.parametrize("command", ["sleep", "a b", "a) S 1 (b", "((x)", ""])
def test_stat_is_read_behind_any_command(command: str) -> None:
    """A program may call itself anything, parentheses included."""
    fields = ["R", *map(str, range(4, 22)), "4711", "0"]
    assert process.parse_stat(f"12 ({command}) {' '.join(fields)}") == ("R", 4711)


def test_this_process_is_alive_and_knows_itself() -> None:
    """The same pid gives the same identity each time."""
    own = process.identify(os.getpid())
    assert own is not None
    assert own.pid == os.getpid()
    assert process.alive(own)


@pytest.mark.parametrize(("boot", "start"), [("other", 0), ("", 1)])
def test_a_reused_pid_is_never_signalled(boot: str, start: int) -> None:
    """Another boot or another start time means another process."""
    with subprocess.Popen(["sleep", "60"]) as child:
        known = process.identify(child.pid)
        assert known is not None
        other = process.Identity(boot or known.boot, known.pid, known.start + start)
        assert not process.alive(other)
        assert not process.send(other, signal.SIGKILL)
        assert process.alive(known)
        assert process.send(known, signal.SIGKILL)


def test_a_process_that_waits_to_be_reaped_is_gone() -> None:
    """Nothing can be asked of it, and it holds no port and no file."""
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert process.identify(child.pid) is None


def test_waiting_ends_with_the_last_process() -> None:
    """True when all are gone, False when time is over before."""
    with subprocess.Popen(["sleep", "60"]) as child:
        known = process.identify(child.pid)
        assert not process.wait_gone([known, None], seconds=0)
        child.kill()
        assert process.wait_gone([known, None], seconds=10)


def test_a_launched_program_has_its_own_session_and_log(tmp_path: Path) -> None:
    """It must outlive the terminal, and what it says is kept."""
    log = tmp_path / "log"
    begun = process.launch(
        ["sh", "-c", "echo $WORD; exec sleep 60"],
        log=log,
        env={"PATH": os.environ["PATH"], "WORD": "hello"},
        group=None,
    )
    try:
        while not log.read_text():
            time.sleep(0.01)
        assert log.read_text() == "hello\n"
        assert os.getsid(begun.pid) == begun.pid
    finally:
        process.send(begun, signal.SIGKILL)
        os.waitpid(begun.pid, 0)
    assert not process.alive(begun)
