"""Which TCP ports does a cluster use? Must not know what listens on them."""

import socket
import zlib
from collections.abc import Callable

from .errors import ClusterError

FIRST, LAST, BLOCK = 20000, 31999, 10
"""Below the range from which the kernel gives out ports by itself (32768 and up)."""


def choose_ports(name: str, count: int, is_free: Callable[[int], bool]) -> list[int]:
    """Free ports in ascending order of trial, the same for a name where possible.

    Different names begin at different places, so that two clusters that start at the same moment
    hardly ever try the same port.
    """
    span = LAST - FIRST + 1
    begin = zlib.crc32(name.encode()) % (span // BLOCK) * BLOCK
    chosen: list[int] = []
    for offset in range(span):
        port = FIRST + (begin + offset) % span
        if is_free(port):
            chosen.append(port)
        if len(chosen) == count:
            return chosen
    raise ClusterError(f"only {len(chosen)} of {count} ports are free between {FIRST} and {LAST}")


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of every address now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))  # noqa: S104 - only a probe, closed at once
        except OSError:
            return False
    return True
