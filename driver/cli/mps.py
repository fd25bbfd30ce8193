"""`quadrant mps`: the process that keeps MPS daemons beside the node plugin."""

import asyncio
from collections.abc import Sequence
from pathlib import PurePosixPath

from driver.cli.lean import Parser
from driver.cli.usage import UsageError
from driver.obs.lean import import_structlog

DEFAULT_FOLDER = "/run/quadrant/mps"


def call(arguments: Sequence[str]) -> None:
    """Keep the daemons that are wanted until the process is told to end.

    Raises `UsageError` for a wrong call, and what `driver.node.mps.run.run` raises.
    """
    import_structlog()
    parser = Parser(
        prog="quadrant mps",
        description="Keep the MPS daemons that the node plugin wants; one process for each node.",
    )
    parser.add_argument(
        "--mps-dir",
        default=DEFAULT_FOLDER,
        help=f"The folder that `quadrant node --mps-dir` names [{DEFAULT_FOLDER}]",
    )
    parser.add_log_level()
    told = parser.parse_args(arguments)
    if not PurePosixPath(told.mps_dir).is_absolute():
        raise UsageError(f"--mps-dir must be an absolute path, not {told.mps_dir!r}")
    from driver.node.mps.run import run  # noqa: PLC0415  (--help must not wait for it)
    from driver.obs import logging  # noqa: PLC0415

    logging.configure(told.log_level)
    asyncio.run(run(told.mps_dir))
