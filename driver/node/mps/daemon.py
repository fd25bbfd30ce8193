"""One MPS control daemon: started, asked, told its limits, ended.

All through NVIDIA's own program, which both is the daemon and talks to it.
"""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from pathlib import Path

import structlog

from driver.node.card import MIB
from driver.node.errors import HardwareError
from driver.node.mps.folder import WantedDaemon

PROGRAM = "nvidia-cuda-mps-control"
# Clients may take that long to finish; afterwards their work is cut off.
_QUIT = "quit -t 5"
_ASK_WITHIN_S = 10.0
_END_WITHIN_S = 15.0
_LOOK_EVERY_S = 0.1
_NO_LIMIT = 100

log = structlog.get_logger(__name__)


class Daemon:
    """The daemon of one folder, whether this process has started it or an earlier one."""

    def __init__(self, folder: Path, *, program: str = PROGRAM) -> None:
        self._folder = folder
        self._program = program
        self._process: Process | None = None

    async def start(self, cards: tuple[str, ...]) -> None:
        """Start it, unless one answers already; raises `HardwareError` when it does not begin."""
        if await self.answers():
            log.info("took over an MPS daemon", daemon=self._folder.name)
            return
        variables = {"CUDA_VISIBLE_DEVICES": ",".join(cards)}
        with (self._folder / "log" / "output").open("ab") as output:
            try:
                # It must not get the signals that are meant for the keeper.
                self._process = await asyncio.create_subprocess_exec(
                    self._program,
                    "-f",
                    stdin=DEVNULL,
                    stdout=output,
                    stderr=STDOUT,
                    env=self._environment(variables),
                    start_new_session=True,
                )
            except OSError as error:
                raise HardwareError(f"{self._program} cannot be started: {error}") from error

    async def answers(self) -> bool:
        """Whether it does what it is there for."""
        try:
            return bool((await self._ask("get_default_active_thread_percentage")).strip())
        except HardwareError:
            return False

    def ended(self) -> bool:
        """Whether it is known to have ended; one that was taken over is asked, by `answers`."""
        return self._process is not None and self._process.returncode is not None

    async def limit(self, wanted: WantedDaemon) -> None:
        """Tell it what no client may go beyond, and those servers that already run."""
        servers = (await self._ask("get_server_list")).split()
        percentage = wanted.threads or _NO_LIMIT
        commands = [f"set_default_active_thread_percentage {percentage}"]
        commands += [f"set_active_thread_percentage {pid} {percentage}" for pid in servers]
        for position, limit in enumerate(wanted.memory_limits):
            if limit is not None:
                amount = f"{position} {limit // MIB}M"
                commands.append(f"set_default_device_pinned_mem_limit {amount}")
                commands += [f"set_device_pinned_mem_limit {pid} {amount}" for pid in servers]
        for command in commands:
            await self._ask(command)

    async def end(self) -> None:
        """End it, by force if it must be; no error when there is none."""
        pid = self._pid()
        with contextlib.suppress(HardwareError):
            await self._ask(_QUIT)
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None and pid is not None and not self._is_gone(pid):
                log.warning("MPS daemon does not end", daemon=self._folder.name, signal=number.name)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            if await self._gone(pid):
                return
        raise HardwareError(f"MPS daemon {self._folder.name}, process {pid}, cannot be ended")

    async def _gone(self, pid: int | None) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_END_WITHIN_S):
                while pid is not None and not self._is_gone(pid):  # noqa: ASYNC110
                    await asyncio.sleep(_LOOK_EVERY_S)
                return True
        return False

    def _is_gone(self, pid: int) -> bool:
        if self._process is not None and self._process.pid == pid:
            return self._process.returncode is not None
        return not _is_program(pid, self._program)

    def _pid(self) -> int | None:
        if self._process is not None:
            return self._process.pid
        try:
            pid = int((self._folder / "pipe" / f"{PROGRAM}.pid").read_text())
        except (OSError, ValueError):
            return None
        return pid if _is_program(pid, self._program) else None

    async def _ask(self, command: str) -> str:
        try:
            async with asyncio.timeout(_ASK_WITHIN_S):
                asking = await asyncio.create_subprocess_exec(
                    self._program, stdin=PIPE, stdout=PIPE, stderr=STDOUT, env=self._environment({})
                )
                try:
                    said, _ = await asking.communicate(f"{command}\n".encode())
                finally:
                    if asking.returncode is None:
                        asking.kill()
                        await asking.wait()
        except (OSError, TimeoutError) as error:
            reason = str(error) or f"no answer within {_ASK_WITHIN_S:.0f} s"
            raise HardwareError(f"{self._program}, asked {command!r}: {reason}") from error
        if asking.returncode != 0:
            raise HardwareError(f"{self._program}, asked {command!r}: {said.decode().strip()}")
        return said.decode()

    def _environment(self, variables: dict[str, str]) -> dict[str, str]:
        folders = {
            "CUDA_MPS_PIPE_DIRECTORY": str(self._folder / "pipe"),
            "CUDA_MPS_LOG_DIRECTORY": str(self._folder / "log"),
        }
        return {**os.environ, **folders, **variables}


def _is_program(pid: int, program: str) -> bool:
    """Whether the process is one of this program: numbers are used again."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
    except OSError:
        return False
    return state != "Z" and Path(program).name.encode() in command
