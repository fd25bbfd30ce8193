"""The power fails: what was not synced to the disk may be cut short."""

from pathlib import Path

from tests.node.builders import CLAIMS, ref
from tests.node.machine import Machine


async def test_a_cdi_file_that_a_power_cut_has_cut_short_is_made_anew(tmp_path: Path) -> None:
    """It was not synced; where the folder is on a disk, the runtime must not read half of it."""
    node = Machine(tmp_path, CLAIMS).start()
    await node.prepare(ref(0))
    (path,) = node.cdi.iterdir()
    whole = path.read_bytes()
    node.stop()
    node.boot += 1
    path.write_bytes(b"")
    node.start()
    assert path.read_bytes() == whole
    node.stop()
