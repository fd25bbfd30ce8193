"""Which process is ours, and is it still alive? Must not know what the processes are for.

A process is known by boot, pid and start time, so a pid that the kernel gave to another process
is never signalled.
"""

import os
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_IN_GROUP = 'cd / && { [ -z "$0" ] || echo $$ >"$0"; } && exec "$@"'
"""Enters the cgroup before the program starts, so that none of its children can be outside."""


@dataclass(frozen=True)
class Identity:
    """One process for all time: pids are reused, this is not."""

    boot: str
    pid: int
    start: int


def parse_stat(text: str) -> tuple[str, int]:
    """State letter and start time (clock ticks since boot) from ``/proc/PID/stat``.

    The command, in parentheses, may itself hold spaces and parentheses: fields are counted after
    the last one.
    """
    fields = text[text.rindex(")") + 2 :].split()
    return fields[0], int(fields[19])


def boot() -> str:
    """The kernel's identifier of this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def identify(pid: int) -> Identity | None:
    """The identity of a running process, or None when it is gone or only waits to be reaped."""
    try:
        state, start = parse_stat(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8"))
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state in "ZX" else Identity(boot(), pid, start)


def network_namespace(pid: int) -> int | None:
    """The inode of the network namespace that a process is in; None when it is gone."""
    try:
        return Path(f"/proc/{pid}/ns/net").stat().st_ino
    except (FileNotFoundError, ProcessLookupError):
        return None


def alive(process: Identity | None) -> bool:
    """Whether this very process still runs."""
    return process is not None and identify(process.pid) == process


def send(process: Identity | None, number: signal.Signals) -> bool:
    """Signal this very process; False when it is gone. The handle closes the race with reuse."""
    if process is None:
        return False
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        if not alive(process):
            return False
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def wait_gone(processes: Iterable[Identity | None], *, seconds: float) -> bool:
    """Wait until none of them runs; False when some still does after that time."""
    waiting = list(processes)
    deadline = time.monotonic() + seconds
    while waiting := [process for process in waiting if alive(process)]:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def launch(
    argv: Sequence[str], *, log: Path, env: Mapping[str, str], group: Path | None
) -> Identity:
    """Start a program in a session of its own, its output appended to ``log``.

    ``group`` is the ``cgroup.procs`` file that it enters first. The program outlives the caller.
    """
    command = ["/bin/sh", "-c", _IN_GROUP, str(group or ""), *argv]
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    pid = os.posix_spawn(
        command[0],
        command,
        dict(env),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), flags, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
    return identify(pid) or Identity(boot(), pid, 0)
