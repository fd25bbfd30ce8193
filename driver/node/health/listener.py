"""Listens to hardware in a thread of its own, for as long as it takes, and opens it anew.

A driver that hangs holds up this thread and nothing else; that nothing is heard any more is
noticed by whoever is told.
"""

import threading
import time
from collections.abc import Callable

import msgspec
import structlog

from driver.node.health.port import HealthSource, Reading, SourceFailedError, Xid

log = structlog.get_logger(__name__)


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds."""

    # Between two looks at the cards.
    look: float = 5.0
    # The longest wait for events: so soon the thread notices that it shall end.
    wait: float = 1.0
    # Between attempts to open the hardware.
    again: float = 2.0
    # Without any word for so long, hardware counts as silent.
    deaf: float = 30.0


class Failed(msgspec.Struct, frozen=True):
    """Hardware could not be opened or stopped answering, and not only once."""

    why: str


Heard = tuple[Xid, ...] | tuple[Reading, ...] | Failed


class Listener:
    """`start` it once; `tell` is called in its thread with what is heard."""

    def __init__(
        self, connect: Callable[[], HealthSource], tell: Callable[[Heard], None], pace: Pace
    ) -> None:
        self._connect = connect
        self._tell = tell
        self._pace = pace
        self._ended = threading.Event()
        # A driver that hangs must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="health", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self) -> None:
        """Have it end soon; does not wait for a driver that hangs."""
        self._ended.set()

    def _run(self) -> None:
        is_first = True
        while not self._ended.is_set():
            began = time.monotonic()
            try:
                self._listen()
            except SourceFailedError as error:
                why = str(error)
                log.warning("health is not read; opening the hardware anew", error=why)
            except Exception as error:
                why = f"health cannot be read: {type(error).__name__}: {error}"
                log.exception("the source of health failed; opening it anew")
            else:
                return
            # Where opening anew helps, there is nothing to tell.
            if not is_first and time.monotonic() - began < self._pace.deaf:
                self._tell(Failed(why))
            is_first = False
            self._ended.wait(self._pace.again)

    def _listen(self) -> None:
        source = self._connect()
        try:
            self._tell(source.read())
            look_at = time.monotonic() + self._pace.look
            while not self._ended.is_set():
                events = source.wait(self._pace.wait)
                if events:
                    self._tell(events)
                if events is not None or time.monotonic() >= look_at:
                    self._tell(source.read())
                    look_at = time.monotonic() + self._pace.look
        finally:
            source.close()
