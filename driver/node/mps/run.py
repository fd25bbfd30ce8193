"""The keeper as a process."""

import asyncio
import signal
from pathlib import Path

from driver.node.errors import SettingsError
from driver.node.mps.folder import MpsFolder
from driver.node.mps.keeper import Keeper


async def run(folder: str) -> None:
    """Keep the daemons that are wanted in this folder until SIGTERM or SIGINT.

    Raises `SettingsError` when the NVML bindings are not installed, `OSError` when the folder
    cannot be used.
    """
    try:
        from driver.node.nvidia.control import NvmlControl  # noqa: PLC0415  (an optional dependency)
    except ImportError as error:
        raise SettingsError(
            "the NVML bindings are not installed: install quadrant-dra[nvml]"
        ) from error
    keeping = asyncio.ensure_future(Keeper(MpsFolder(Path(folder)), NvmlControl()).run())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, keeping.cancel)
    try:
        await keeping
    except asyncio.CancelledError:
        return
