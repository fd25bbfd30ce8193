"""Another version of the plugin goes on with what this one left, and the other way round."""

import json
import shutil
import zlib
from pathlib import Path

import pytest

from driver.node.errors import DoubleUseError
from driver.node.state.checkpoint import put
from driver.node.state.store import ClaimStore
from tests.node.builders import CLAIMS, UIDS, claim, prepared, ref, result
from tests.node.machine import Machine
from tests.node.versions import written_by_the_next

# Written by the plugin as of 0.1: claim 0 prepared and unprepared; 1 and 2 (shares of gpu-0),
# 4 (gpu-1 whole) and 6 (looks at gpu-3 as an administrator) prepared.
_RECORDED = Path(__file__).parent / "recorded" / "0.1"
_HELD = {UIDS[number] for number in (1, 2, 4, 6)}


@pytest.fixture
def older(tmp_path: Path) -> Machine:
    """A node with running pods, on which the older plugin has just ended."""
    folder = tmp_path / "node"
    shutil.copytree(_RECORDED, folder)
    node = Machine(folder, CLAIMS)
    node.claims["claim-6"] = claim(6, result("gpu-3", admin=True))
    return node


async def test_the_checkpoint_of_the_version_before_is_read(older: Machine) -> None:
    """Running pods keep their cards, the kubelet's repeated calls find all as it was."""
    older.start()
    assert set(older.book()) == older.cdi_files() == _HELD
    assert not older.store.is_lost()
    with pytest.raises(DoubleUseError, match="held by claim default/claim-1"):
        await older.prepare(ref(0))
    for number in (1, 2, 4, 6):
        await older.prepare(ref(number))
    assert set(older.book()) == older.cdi_files() == _HELD
    for number in (1, 2, 4, 6):
        await older.unprepare(ref(number))
    assert (older.book(), older.cdi_files()) == ({}, set())
    older.stop()


async def test_what_the_next_version_has_written_survives_this_one(tmp_path: Path) -> None:
    """A downgrade under running pods: unknown fields are not looked at and not lost."""
    node = Machine(tmp_path, CLAIMS).start()
    for number in (1, 4, 6):
        await node.prepare(ref(number))
    answers = [await node.prepare(ref(number)) for number in (1, 4, 6)]
    node.stop()
    newer = [written_by_the_next(line) for line in node.journal.read_bytes().splitlines()]
    node.journal.write_bytes(b"\n".join([*newer, b""]))
    node.start()
    assert not node.store.is_lost()
    assert [await node.prepare(ref(number)) for number in (1, 4, 6)] == answers
    with pytest.raises(DoubleUseError):
        await node.prepare(ref(0))
    for _ in range(400):
        node.store.locked(lambda _book: put(prepared(5)))
    await node.unprepare(ref(5))
    lines = node.journal.read_bytes().splitlines()
    assert len(lines) < 400, "it was compacted"
    done = {json.loads(line)["record"]["uid"]: line for line in newer}
    assert set(done.values()) <= set(lines), "byte for byte"
    for number in (1, 4, 6):
        await node.unprepare(ref(number))
    assert (node.book(), node.cdi_files(), node.settings()) == ({}, set(), {})
    node.stop()


def test_a_version_that_must_not_be_mistaken_ends_the_plugin(tmp_path: Path) -> None:
    """Only where an older plugin could not act rightly; the file is left as it is."""
    journal = tmp_path / "claims.journal"
    body = b'{"version":2,"uid":"a"}'
    journal.write_bytes(b'{"checksum":"%08x","record":%s}\n' % (zlib.crc32(body), body))
    before = journal.read_bytes()
    for _ in range(2):
        with pytest.raises(Exception, match="records of version 2, this plugin understands 1"):
            ClaimStore(journal)
    assert journal.read_bytes() == before
