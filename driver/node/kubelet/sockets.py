"""Unix sockets that come and go with their process: served, replaced, and cleared away."""

import socket
from pathlib import Path

import grpc.aio
import structlog

from driver.node.errors import NodeError

log = structlog.get_logger(__name__)


def bind(server: grpc.aio.Server, path: Path) -> None:
    """Have `server` listen on a socket of its own; one that a killed process left is replaced.

    Raises `NodeError` when something else is at the path, or it cannot be bound.
    """
    if path.exists() and not path.is_socket():
        raise NodeError(f"{path} is in the way: expected a unix socket or nothing; remove it")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
        path.unlink(missing_ok=True)
        server.add_insecure_port(f"unix:{path}")
    except (OSError, RuntimeError) as error:
        raise NodeError(f"cannot listen on {path}: {error}") from error


def clear_dead(folder: Path, pattern: str) -> None:
    """Remove sockets that match and that no process serves any more.

    A killed instance leaves its sockets, and the kubelet would call at them for ever. One that is
    only busy is left alone: connecting to it succeeds or would block.
    """
    for path in folder.glob(pattern):
        if path.is_socket() and _is_dead(path):
            path.unlink(missing_ok=True)
            log.info("removed a dead socket", path=str(path))


def _is_dead(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
        return False
