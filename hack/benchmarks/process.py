"""What a running process takes of the machine, as /proc tells it."""

import os
from pathlib import Path


def resident(pid: int) -> float:
    """MiB of a process that are in memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    return rss(status)


def rss(status: str) -> float:
    """The resident memory that /proc/PID/status tells, in MiB; raises ValueError without one."""
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if name == "VmRSS":
            return int(value.split()[0]) / 1024
    raise ValueError("the process has no memory any more: it has ended")


def cpu_time(pid: int) -> float:
    """Seconds of CPU time that a process has used since its start, its threads included."""
    return cpu_ticks(Path(f"/proc/{pid}/stat").read_text()) / os.sysconf("SC_CLK_TCK")


def cpu_ticks(stat: str) -> int:
    """User and system time that /proc/PID/stat tells, in clock ticks."""
    # The second field is the program's name in parentheses, and may hold anything.
    fields = stat.rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
