"""Keeps the MPS daemons that the plugin wants: started, watched, started again, ended.

Whatever happens to the plugin meanwhile, a daemon that is wanted goes on. When the keeper ends its
daemons stay; the next one takes over those that answer.
"""

import asyncio
import os
from contextlib import suppress

import structlog
from msgspec import structs

from driver.kube.backoff import Backoff
from driver.node.errors import HardwareError
from driver.node.mps.daemon import PROGRAM, Daemon
from driver.node.mps.folder import DaemonState, MpsFolder, WantedDaemon
from driver.node.sharing.port import CardControl, ComputeMode

_LOOK_EVERY_S = 0.1
# How often a daemon that was not started here is asked whether it is there.
_ASK_EVERY_S = 5.0
_BEGIN_WITHIN_S = 15.0
_RETRY_FIRST_S = 0.5
_RETRY_LAST_S = 10.0

log = structlog.get_logger(__name__)


class Keeper:
    """The keeper of one node; `run` it as a task."""

    def __init__(self, folder: MpsFolder, control: CardControl, *, program: str = PROGRAM) -> None:
        self._folder = folder
        self._control = control
        self._program = program
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Keep daemons until cancelled; waits while another keeper lives."""
        self._folder.create()
        lock = await self._lock()
        log.info("keeping MPS daemons", folder=str(self._folder.path))
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    for name in {*self._folder.names(), *self._folder.known()}:
                        if name not in self._tasks or self._tasks[name].done():
                            self._tasks[name] = group.create_task(self._kept(name))
                    await asyncio.sleep(_LOOK_EVERY_S)
        finally:
            os.close(lock)

    async def _lock(self) -> int:
        while (lock := self._folder.lock()) is None:  # noqa: ASYNC110  (files send no events)
            await asyncio.sleep(_LOOK_EVERY_S)
        return lock

    async def _kept(self, name: str) -> None:
        """`_keep`, which an error of the disk ends for this daemon and for this time only."""
        try:
            await self._keep(name)
        except OSError as error:
            log.warning("MPS daemon not looked after", daemon=name, error=str(error))
            await asyncio.sleep(_RETRY_FIRST_S)

    async def _keep(self, name: str) -> None:
        """One daemon, from when it is wanted until it is gone."""
        backoff = Backoff(base=_RETRY_FIRST_S, cap=_RETRY_LAST_S)
        daemon = Daemon(self._folder.path / name, program=self._program)
        restarts = 0
        while (wanted := self._folder.wanted(name)) is not None:
            state = DaemonState(cards=wanted.cards, restarts=restarts)
            try:
                self._folder.create_daemon(name)
                self._folder.keep_state(name, state)
                if not await self._cards_are_free(name, state):
                    continue
                await self._begin(daemon, wanted)
                backoff.reset()
                await self._watch(name, daemon, state)
            except (HardwareError, OSError) as error:
                log.warning("MPS daemon does not work", daemon=name, error=str(error))
                self._say(name, structs.replace(state, error=str(error)))
                await self._pause(name, backoff.next())
            restarts += 1
        await self._end(name, daemon)

    async def _cards_are_free(self, name: str, state: DaemonState) -> bool:
        """Wait for the end of daemons on these cards that are not wanted; no when this is not.

        A card is set back with the end of its daemon, which must not undo what the next one sets.
        """
        said = ""
        while (other := self._ending_on(state.cards)) is not None:
            if self._folder.wanted(name) is None:
                return False
            if other != said:
                self._say(name, structs.replace(state, error=f"daemon {other} has to end first"))
                said = other
            await asyncio.sleep(_LOOK_EVERY_S)
        return True

    def _ending_on(self, cards: tuple[str, ...]) -> str | None:
        for name in self._folder.known():
            state = self._folder.state(name)
            if state and set(state.cards) & set(cards) and self._folder.wanted(name) is None:
                return name
        return None

    def _say(self, name: str, state: DaemonState) -> None:
        try:
            self._folder.keep_state(name, state)
        except OSError as error:
            # It only tells who waits why; the daemon is tried again without.
            log.warning("state of MPS daemon not written", daemon=name, error=str(error))

    async def _begin(self, daemon: Daemon, wanted: WantedDaemon) -> None:
        for card in wanted.cards:
            await asyncio.to_thread(
                self._control.set_compute_mode, card, ComputeMode.EXCLUSIVE_PROCESS
            )
        await daemon.start(wanted.cards)
        with suppress(TimeoutError):
            async with asyncio.timeout(_BEGIN_WITHIN_S):
                while not daemon.ended():
                    if await daemon.answers():
                        return
                    await asyncio.sleep(_LOOK_EVERY_S)
        await daemon.end()
        raise HardwareError(f"{self._program} was started and does not answer; see its log folder")

    async def _watch(self, name: str, daemon: Daemon, state: DaemonState) -> None:
        """Tell it what changes; returns when it is not wanted, raises when it is not there."""
        told, asked = "", asyncio.get_running_loop().time()
        while (wanted := self._folder.wanted(name)) is not None:
            if wanted.version() != told:
                await daemon.limit(wanted)
                told = wanted.version()
                self._folder.keep_state(name, structs.replace(state, ready=told))
                log.info("MPS daemon answers", daemon=name, cards=wanted.cards)
            await asyncio.sleep(_LOOK_EVERY_S)
            due = asyncio.get_running_loop().time() - asked > _ASK_EVERY_S
            if daemon.ended() or (due and not await daemon.answers()):
                raise HardwareError("the daemon has ended; it is started again")
            if due:
                asked = asyncio.get_running_loop().time()

    async def _pause(self, name: str, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._folder.wanted(name) is not None:  # noqa: ASYNC110
                    await asyncio.sleep(_LOOK_EVERY_S)

    async def _end(self, name: str, daemon: Daemon) -> None:
        state = self._folder.state(name) or DaemonState()
        try:
            # Whoever wants it again meanwhile must not take the one that ends for it.
            self._folder.keep_state(name, structs.replace(state, ready=""))
            await daemon.end()
            for card in state.cards:
                await asyncio.to_thread(self._control.set_compute_mode, card, ComputeMode.DEFAULT)
            self._folder.keep_state(name, None)
        except (HardwareError, OSError) as error:
            # Said until it is over; whoever waits for the end has a bound of its own.
            log.warning("MPS daemon not ended", daemon=name, error=str(error))
            await asyncio.sleep(_RETRY_LAST_S)
            return
        log.info("MPS daemon ended", daemon=name)
