"""`quadrant node` that kills itself (SIGKILL) when it comes to one of its fault points.

python -m tests.cluster.killed POINT MARKER [OPTION...]

It writes the marker first, and passes by where the marker is there already.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from driver.cli.node import read
from driver.node.faults import FaultPoint
from driver.node.run import run
from driver.obs import logging


def main() -> None:
    """Be the plugin until the point is reached."""
    armed, marker = FaultPoint[sys.argv[1]], Path(sys.argv[2])
    settings, level = read(sys.argv[3:])

    def reach(point: FaultPoint) -> None:
        if point == armed and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    logging.configure(level)
    asyncio.run(run(settings, reach=reach))


if __name__ == "__main__":
    main()
