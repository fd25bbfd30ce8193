"""The checkpoint: what is written is what is read, and damage stays where it is."""

import asyncio
import errno
import json
import zlib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver.node.errors import StorageError
from driver.node.faults import FaultPoint
from driver.node.held import PreparedClaim
from driver.node.state.checkpoint import Book, DamagedLine, Record, decode, drop, encode, put
from driver.node.state.store import ClaimStore
from tests.node.builders import UIDS, held, prepared
from tests.node.test_cdi import CLAIMS


def _line(record: object) -> bytes:
    body = json.dumps(record).encode()
    checksum = f"{zlib.crc32(body):08x}"
    return b'{"checksum":"%s","record":%s}' % (checksum.encode(), body)


def _uids(store: ClaimStore) -> list[str]:
    found: list[str] = []

    def look(book: Book) -> None:
        found.extend(claim.uid for claim in book.claims())

    store.locked(look)
    return found


def _put(store: ClaimStore, claim: PreparedClaim) -> None:
    store.locked(lambda _: put(claim))


@given(CLAIMS)
def test_a_record_is_read_as_it_was_written(claim: PreparedClaim) -> None:
    """Both kinds of record."""
    for record in (put(claim), drop(claim.uid)):
        assert decode(encode(record).rstrip(b"\n")) == record


@given(CLAIMS, st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_byte_is_noticed(claim: PreparedClaim, where: int, flip: int) -> None:
    """A line either says what was written, or is damaged; never something else."""
    line = bytearray(encode(put(claim)).rstrip(b"\n"))
    line[where % len(line)] ^= flip
    assert decode(bytes(line)) in (put(claim), DamagedLine(bytes(line), _reason(bytes(line))))


def _reason(line: bytes) -> str:
    found = decode(line)
    return found.reason if isinstance(found, DamagedLine) else ""


@given(st.binary(max_size=200))
def test_any_bytes_are_a_line_or_damage(data: bytes) -> None:
    """Reading never fails on content."""
    assert isinstance(decode(data), Record | DamagedLine)


def test_fields_of_a_later_version_survive_compaction(tmp_path: Path) -> None:
    """Downgrade and upgrade again: what this version does not know is still there."""
    path = tmp_path / "journal"
    known = msgspec.json.decode(encode(put(prepared(0))))["record"]
    known["claim"]["later"] = {"a": [1, 2]}
    path.write_bytes(_line(known) + b"\n")
    store = ClaimStore(path)
    for _ in range(400):
        _put(store, prepared(1))
        store.locked(lambda _: drop(UIDS[1]))
    store.close()
    lines = path.read_bytes().splitlines()
    assert len(lines) < 400
    assert lines[0] == _line(known)


def test_a_record_that_must_not_be_misread_stops_the_plugin(tmp_path: Path) -> None:
    """A higher version says that an older plugin would act wrongly on it."""
    path = tmp_path / "journal"
    path.write_bytes(_line({"version": 2, "uid": UIDS[0]}) + b"\n")
    with pytest.raises(StorageError, match="records of version 2, this plugin understands 1"):
        ClaimStore(path)


def test_a_torn_write_is_cut_off_and_nothing_else_is_lost(tmp_path: Path) -> None:
    """At every length of the last line: nobody was told that it is durable."""
    path = tmp_path / "journal"
    store = ClaimStore(path)
    store.settle()
    _put(store, prepared(0))
    intact = path.read_bytes()
    _put(store, prepared(1))
    store.close()
    whole = path.read_bytes()
    for length in range(len(intact), len(whole)):
        path.write_bytes(whole[:length])
        store = ClaimStore(path)
        assert _uids(store) == [UIDS[0]]
        assert not store.is_lost()
        _put(store, prepared(2))
        store.close()
        assert sorted(_uids(ClaimStore(path))) == [UIDS[0], UIDS[2]]


@settings(max_examples=50, deadline=None)
@given(damage=st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 255)), min_size=1))
def test_a_damaged_file_is_put_aside_and_its_good_lines_are_used(
    tmp_path_factory: pytest.TempPathFactory, damage: list[tuple[int, int]]
) -> None:
    """Whatever bytes are changed, lines without a changed byte stay in force."""
    path = tmp_path_factory.mktemp("checkpoint") / "journal"
    lines = [encode(put(prepared(number, [held("gpu-0")]))) for number in range(4)]
    data = bytearray(b"".join(lines))
    for where, flip in damage:
        data[where % len(data)] ^= flip
    path.write_bytes(data)
    try:
        store = ClaimStore(path)
    except StorageError as error:
        assert "records of version" in str(error)  # noqa: PT017  (the damage made a version of it)
        return
    # A line end that became something else damages the line after it too.
    whole = bytes(data).split(b"\n")
    good = {UIDS[number] for number in range(4) if lines[number].rstrip(b"\n") in whole[:-1]}
    assert good <= set(_uids(store))
    if store.is_lost():
        assert path.with_name("journal.bad-0").exists()
        assert not any(
            isinstance(decode(line), DamagedLine) for line in path.read_bytes().splitlines()
        )
    store.close()


def test_a_file_that_is_removed_under_the_plugin_is_written_again(tmp_path: Path) -> None:
    """What it knows is in its memory; nobody has to be asked."""
    path = tmp_path / "journal"
    store = ClaimStore(path)
    store.settle()
    _put(store, prepared(0))
    path.unlink()
    _put(store, prepared(1))
    assert sorted(_uids(ClaimStore(path))) == UIDS[:2]
    assert not store.is_lost()
    store.close()


def test_two_instances_see_what_the_other_has_written(tmp_path: Path) -> None:
    """Old and new plugin of a rolling update, over appends and a compaction."""
    one, two = ClaimStore(tmp_path / "journal"), ClaimStore(tmp_path / "journal")
    _put(one, prepared(0))
    assert _uids(two) == [UIDS[0]]
    for number in range(400):
        _put(two, prepared(1 + number % 3))
    assert sorted(_uids(one)) == UIDS[:4]
    one.locked(lambda _: drop(UIDS[0]))
    assert sorted(_uids(two)) == UIDS[1:4]
    one.close()
    two.close()


async def test_changes_that_wait_together_are_written_together(tmp_path: Path) -> None:
    """One sync for all of them; each gets its own answer."""
    syncs: list[FaultPoint] = []
    store = ClaimStore(tmp_path / "journal", reach=syncs.append)

    def refuse(_book: Book) -> None:
        raise LookupError

    changes = [store.apply(lambda _, n=n: put(prepared(n))) for n in range(8)]  # type: ignore[misc]
    answers = await asyncio.gather(*changes, store.apply(refuse), return_exceptions=True)
    assert [type(answer) for answer in answers] == [type(None)] * 8 + [LookupError]
    assert sorted(_uids(store)) == UIDS[:8]
    assert syncs.count(FaultPoint.AFTER_SYNC) <= 2
    store.close()


async def test_a_full_disk_changes_nothing_and_is_over_when_it_is_over(tmp_path: Path) -> None:
    """The callers are told; a half-written line does not come true later."""
    full = False

    def reach(point: FaultPoint) -> None:
        if full and point == FaultPoint.BEFORE_SYNC:
            raise OSError(errno.ENOSPC, "No space left on device")

    store = ClaimStore(tmp_path / "journal", reach=reach)
    await store.apply(lambda _: put(prepared(0)))
    before = (tmp_path / "journal").read_bytes()
    full = True
    with pytest.raises(StorageError, match="No space left on device"):
        await store.apply(lambda _: put(prepared(1)))
    assert (tmp_path / "journal").read_bytes() == before
    full = False
    await store.apply(lambda _: put(prepared(2)))
    assert sorted(_uids(store)) == [UIDS[0], UIDS[2]]
    store.close()
