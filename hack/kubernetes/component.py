"""How is a component started, stopped and found ready? Must not know which components exist."""

import dataclasses
import os
import signal
import socket
import ssl
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

from . import process
from .errors import ClusterError
from .state import Component, State

_TAIL = 15
_GRACE = 5.0
"""Seconds to end by oneself. The API server would take a minute, waiting for idle clients."""


def start(state: State, component: Component) -> Component:
    """Start it and return it with its process. It is not ready yet."""
    folders = sorted({str(Path(path).parent) for path in state.bin.values()})
    env = {**os.environ, "PATH": ":".join([*folders, os.environ.get("PATH", os.defpath)])}
    begun = process.launch(
        component.argv,
        log=Path(component.log),
        env=env,
        group=Path(component.group) if component.group else None,
    )
    return dataclasses.replace(component, process=begun)


def stop(component: Component) -> None:
    """End it: first asked, then killed. One that does not run is fine."""
    process.send(component.process, signal.SIGTERM)
    process.send(component.process, signal.SIGCONT)
    if not process.wait_gone([component.process], seconds=_GRACE):
        process.send(component.process, signal.SIGKILL)
        process.wait_gone([component.process], seconds=_GRACE)


def wait_ready(component: Component, token: str, *, seconds: float = 120) -> None:
    """Wait until its health says yes; tell why from its log when it ends or takes too long."""
    deadline = time.monotonic() + seconds
    while not _healthy(component.health, token):
        if not process.alive(component.process):
            raise ClusterError(f"{component.name} ended while it was awaited. {_why(component)}")
        if time.monotonic() > deadline:
            raise ClusterError(
                f"{component.name} is not ready after {seconds:.0f} s ({component.health}). "
                f"{_why(component)}"
            )
        time.sleep(0.1)


def _healthy(health: str, token: str) -> bool:
    if not health:
        return True
    if health.startswith("http"):
        return _answers(health, token)
    with suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
        probe.connect(health)
        return True
    return False


def _answers(url: str, token: str) -> bool:
    # Serving certificates of the scheduler and controller-manager are self-signed; only this
    # machine's own addresses are ever asked.
    context = ssl._create_unverified_context()  # noqa: S323, SLF001 - see above
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=2, context=context) as answer:
            return bool(answer.status == 200)  # noqa: PLR2004 - HTTP OK
    except (urllib.error.URLError, OSError):
        return False


def _why(component: Component) -> str:
    with suppress(OSError):
        lines = Path(component.log).read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join([f"The end of {component.log}:", *lines[-_TAIL:]])
    return f"It wrote nothing to {component.log}."
