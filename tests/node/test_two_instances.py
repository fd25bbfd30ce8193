"""Two instances of a rolling update on one node: a claim is worked on by one at a time."""

import asyncio
import errno
from pathlib import Path

import pytest

from driver.model.resourceclaim import ResourceClaim
from driver.node.errors import ClaimRefusedError, StorageError
from driver.node.faults import FaultPoint
from driver.node.sharing.locks import CardLocks
from driver.node.state.checkpoint import put
from driver.node.state.dropped import Dropped
from tests.node.builders import CLAIMS, UIDS, claim, prepared, ref, result, slicing
from tests.node.machine import Machine


class Slow(Machine):
    """An instance whose reads of claims can be held up, and whose disk can fail."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, CLAIMS)
        self.start()
        self.reading = asyncio.Event()
        self.answered = asyncio.Event()

    def _reach(self, point: FaultPoint) -> None:
        if point == self.fault:
            raise OSError(errno.EIO, "Input/output error")

    async def _get_claim(self, namespace: str, name: str) -> ResourceClaim | None:
        self.reading.set()
        await self.answered.wait()
        return await super()._get_claim(namespace, name)


def empty(node: Machine) -> bool:
    """Whether nothing is held, and no file is there."""
    return node.book() == {} and node.cdi_files() == set() and node.settings() == {}


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("prepared_before", [False, True])
async def test_a_late_prepare_does_not_come_true(
    tmp_path: Path, *, compacted: bool, prepared_before: bool
) -> None:
    """Given up while it reads, unprepared by the other instance; asked again it succeeds."""
    old, new = Slow(tmp_path), Machine(tmp_path, CLAIMS).start()
    if prepared_before:
        await new.prepare(ref(0))
    late = asyncio.ensure_future(old.prepare(ref(0)))
    await old.reading.wait()
    await new.unprepare(ref(0))
    if compacted:
        for _ in range(300):
            new.store.locked(lambda _: put(prepared(1)))
        await new.unprepare(ref(1))
        assert len(new.journal.read_bytes().splitlines()) < 300
    old.answered.set()
    with pytest.raises(ClaimRefusedError, match="was unprepared while it was read"):
        await late
    assert empty(old)
    await old.prepare(ref(0))
    assert set(new.book()) == new.cdi_files() == {UIDS[0]}
    await new.unprepare(ref(0))
    assert empty(old)
    old.stop()
    new.stop()


async def test_what_this_instance_has_dropped_itself_refuses_nothing(tmp_path: Path) -> None:
    """A pod that follows another one with the same claim; also one that is allocated anew."""
    old, new = Machine(tmp_path, CLAIMS).start(), Machine(tmp_path, CLAIMS).start()
    for _ in range(2):
        await new.prepare(ref(0))
        await asyncio.gather(new.unprepare(ref(0)), new.prepare(ref(0)))
        await new.unprepare(ref(0))
    assert empty(old)
    await new.prepare(ref(0))
    new.claims["claim-0"] = claim(0, result("gpu-3"))
    await new.prepare(ref(0))
    old.stop()
    new.stop()


async def test_a_disk_that_fails_refuses_no_claim_that_is_read(tmp_path: Path) -> None:
    """The checkpoint is read anew, and it is still the one whose drops were all seen."""
    node = Slow(tmp_path)
    reading = asyncio.ensure_future(node.prepare(ref(0)))
    await node.reading.wait()
    node.fault = FaultPoint.BEFORE_SYNC
    with pytest.raises(StorageError, match="Input/output error"):
        await node.unprepare(ref(4))
    node.fault = None
    node.answered.set()
    await reading
    node.stop()


async def test_an_unprepare_waits_for_the_prepare_of_the_other_instance(tmp_path: Path) -> None:
    """It is past its reservation, and would write its file after all was removed."""
    sharing = [claim(0, result("gpu-0", memory="1Gi", cores="5"), config=[slicing("Long")])]
    old, new = Machine(tmp_path, sharing).start(), Machine(tmp_path, sharing).start()
    async with CardLocks(tmp_path / "cards").held(old.facts().cards["gpu-0"].uuid):
        preparing = asyncio.ensure_future(old.prepare(ref(0)))
        await asyncio.wait([preparing], timeout=0.1)
        unpreparing = asyncio.ensure_future(new.unprepare(ref(0)))
        await asyncio.wait([preparing, unpreparing], timeout=0.1)
        assert set(new.book()) == {UIDS[0]}
    await asyncio.gather(preparing, unpreparing)
    assert empty(new)
    old.stop()
    new.stop()


async def test_a_claim_that_the_other_instance_is_stuck_with_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kubelet is told in time; other claims do not wait."""
    monkeypatch.setattr("driver.node.state.claimlocks._PATIENCE_S", 0.05)
    old, new = Machine(tmp_path, CLAIMS).start(), Machine(tmp_path, CLAIMS).start()
    async with old.store.turns.held(UIDS[0]):
        with pytest.raises(StorageError, match=f"has worked on claim {UIDS[0]}"):
            await new.prepare(ref(0))
        await new.prepare(ref(4))
    await new.prepare(ref(0))
    old.stop()
    new.stop()


async def test_claims_that_nobody_knows_do_not_fill_the_journal(tmp_path: Path) -> None:
    """Each unprepare leaves a line, for the other instance; compaction takes them away."""
    node = Machine(tmp_path, CLAIMS).start()
    await node.prepare(ref(0))
    for _ in range(600):
        await node.unprepare(ref(5))
    assert len(node.journal.read_bytes().splitlines()) < 300
    assert set(node.book()) == {UIDS[0]}
    node.stop()


def test_what_is_not_known_any_more_counts_as_dropped() -> None:
    """What is kept is bounded; who asks from now on is right."""
    dropped = Dropped()
    before = dropped.now()
    dropped.note("a")
    assert dropped.since("a", before)
    assert not dropped.since("b", before)
    assert not dropped.since("a", dropped.now())
    for number in range(3000):
        dropped.note(str(number))
    assert dropped.since("b", before)
    assert not dropped.since("b", dropped.now())
