"""What a process does while it leads, and that it does nothing of it any longer afterwards."""

import asyncio
from collections.abc import Coroutine
from typing import Protocol

import structlog

from driver.controller.term import Term

_log = structlog.get_logger(__name__)


class Duties(Protocol):
    """What a leader does until it is cancelled."""

    def __call__(self, *, silent_from: float, resumed: bool) -> Coroutine[None, None, None]:
        """Lead, from the moment from which no other replica does; see `Candidate.acquired`."""
        ...


class Leadership:
    """Told by the election (`driver.kube.election.Candidate`); starts and ends the duties.

    An error in the duties ends the process' right to answer and is raised by `run`: a controller
    that half works must restart, not go on.
    """

    def __init__(self, term: Term, duties: Duties) -> None:
        self._term = term
        self._duties = duties
        # Of the last term: whether its take-over came to its end, and when others were silent.
        self._took_over = False
        self._silent_from = float("-inf")
        self._task: asyncio.Task[None] | None = None
        self._failed: asyncio.Future[None] | None = None

    def acquired(self, *, silent_from: float, resumed: bool) -> None:
        """We lead: take over, then do the leader's work.

        A term that was lost before its take-over was complete is not resumed: nothing is proven.
        """
        if resumed and not self._took_over:
            resumed, silent_from = False, max(silent_from, self._silent_from)
        self._silent_from = silent_from
        duties = self._duties(silent_from=silent_from, resumed=resumed)
        self._task = asyncio.create_task(self._lead(duties), name="leader")

    def renewed(self, deadline: float) -> None:
        """We may answer until then."""
        self._term.renewed(deadline)

    def lost(self) -> None:
        """Stop at once; what is running is cancelled at its next step."""
        self._took_over = self._term.begun
        self._term.end()
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def run(self) -> None:
        """Wait for ever, or until the duties fail."""
        self._failed = asyncio.get_running_loop().create_future()
        await self._failed

    async def _lead(self, duties: Coroutine[None, None, None]) -> None:
        try:
            await duties
        except Exception as error:  # noqa: BLE001 # `run` raises it again
            self._term.end()
            _log.exception("leader failed")
            if self._failed is not None and not self._failed.done():
                self._failed.set_exception(error)
