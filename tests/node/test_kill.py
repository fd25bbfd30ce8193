"""A real SIGKILL at every fault point: another process finds the node in order."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from driver.node.faults import FaultPoint
from tests.node.builders import CLAIMS, UIDS, ref
from tests.node.machine import Machine

# For each fault point a process that prepares and unprepares a claim, compacts, and is killed
# there. Forked from one that has imported everything, because that takes the time.
_SCRIPT = """
import asyncio, os, signal, sys
from pathlib import Path
from driver.node.state.checkpoint import put
from driver.node.faults import FaultPoint
from tests.node.builders import CLAIMS, prepared, ref
from tests.node.machine import Machine

class Killed(Machine):
    armed = None

    def _reach(self, point):
        if point == self.armed:
            os.kill(os.getpid(), signal.SIGKILL)

async def work(folder, point):
    node = Killed(folder, CLAIMS)
    node.start()
    await node.prepare(ref(5))
    node.armed = point
    for number in (0, 6):
        await node.prepare(ref(number))
        await node.unprepare(ref(number))
    for _ in range(300):
        node.store.locked(lambda _: put(prepared(1)))

for point in FaultPoint:
    folder = Path(sys.argv[1]) / point.name
    folder.mkdir()
    child = os.fork()
    if not child:
        asyncio.run(work(folder, point))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status != signal.SIGKILL:
        sys.exit(f"{point}: ended with status {status}, was not killed")
"""


@pytest.fixture(scope="module")
def remains(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the killed processes left, a folder for each fault point."""
    folder = tmp_path_factory.mktemp("killed")
    command = [sys.executable, "-c", _SCRIPT, str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stderr
    return folder


@pytest.mark.parametrize("point", FaultPoint)
def test_killed_at(point: FaultPoint, remains: Path) -> None:
    """The claim that was prepared before is untouched, the other can be prepared or released."""
    asyncio.run(_look(Machine(remains / point.name, CLAIMS).start()))


async def _look(node: Machine) -> None:
    assert node.book()[UIDS[5]].phase == "done"
    assert {UIDS[5]} <= node.cdi_files() <= set(node.book())
    await node.unprepare(ref(1))
    for number in (0, 6):
        await node.prepare(ref(number))
        await node.unprepare(ref(number))
    assert set(node.book()) == node.cdi_files() == {UIDS[5]}
    assert node.settings() == {}, "no part of a card is left"
    node.stop()
