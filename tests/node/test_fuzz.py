"""Whatever is on the disk and whatever is asked: no crash, nothing lost, nothing leaked."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio
from hypothesis import given, settings
from hypothesis import strategies as st

from driver._proto import dra_v1_pb2
from driver.node.errors import StorageError
from driver.node.held import PreparedClaim
from driver.node.kubelet.service import ClaimWork, add_services
from driver.node.state.checkpoint import Book, encode, put
from driver.node.state.store import ClaimStore
from tests.node.builders import CLAIMS, DRIVER, UIDS, held, prepared, ref
from tests.node.machine import Machine

_LINES = [encode(put(prepared(number, [held(f"gpu-{number % 4}")]))) for number in range(6)]
_PREFIX = f"k8s.{DRIVER}-claim_"


def _claims(store: ClaimStore) -> dict[str, PreparedClaim]:
    found: dict[str, PreparedClaim] = {}

    def read(book: Book) -> None:
        found.update((claim.uid, claim) for claim in book.claims())

    store.locked(read)
    return found


# Pieces of real journals in any order, more than once, cut short, and what is no journal at all.
_PIECES = st.one_of(
    st.sampled_from(_LINES),
    st.tuples(st.sampled_from(_LINES), st.integers(0, 200)).map(lambda cut: cut[0][: cut[1]]),
    st.binary(max_size=60),
    st.just(b"\n"),
    st.just(b'{"checksum":"00000000","record":{}}\n'),
)


@settings(max_examples=100)
@given(st.lists(_PIECES, max_size=12).map(b"".join))
def test_any_journal_can_be_opened_and_written(content: bytes) -> None:
    """Lines that are whole count, the last of each claim; what is written afterwards stays."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "claims.journal"
        path.write_bytes(content)
        try:
            store = ClaimStore(path)
        except StorageError as error:
            assert "records of version" in str(error)  # noqa: PT017  (a version is a byte away)
            return
        whole = {line for line in content.split(b"\n")[:-1] if line + b"\n" in _LINES}
        wanted = {UIDS[n] for n, line in enumerate(_LINES) if line.rstrip(b"\n") in whole}
        assert wanted <= set(_claims(store))
        assert store.is_lost() == any(path.parent.glob("*.bad-*"))
        store.locked(lambda _: put(prepared(7)))
        store.close()
        again = ClaimStore(path)
        assert wanted | {UIDS[7]} <= set(_claims(again))
        again.close()


_NAMES = st.one_of(
    st.sampled_from([f"{_PREFIX}{uid}.json" for uid in UIDS[:3]]),
    st.sampled_from(
        [f"{_PREFIX}.json", f"{_PREFIX}a b.json", f".{_PREFIX}{UIDS[0]}.json.ab.tmp", "other.json"]
    ),
)
_CONTENTS = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [b"{}", b"[]", b'{"annotations":{"quadrant.dev/claim":"{}"}}', b'{"annotations":3}']
    ),
    st.sampled_from(["folder", "link to nothing", "link to itself"]),
)


def _lay(path: Path, content: bytes | str) -> None:
    if isinstance(content, bytes) or UIDS[0] in path.name:
        # Where a folder stands in the way of the claim itself, it is told and not prepared.
        content = content if isinstance(content, bytes) else b""
        path.write_bytes(content)
    elif content == "folder":
        (path / "inside").mkdir(parents=True)
    else:
        path.symlink_to(path if content == "link to itself" else "nowhere")


@settings(max_examples=30)
@given(junk=st.dictionaries(_NAMES, _CONTENTS, max_size=5), lost=st.booleans())
def test_any_cdi_folder_can_be_started_on(junk: dict[str, bytes | str], *, lost: bool) -> None:
    """With the checkpoint and without: held claims stay held, files of others are left alone."""
    folder = Path(tempfile.mkdtemp())
    try:
        asyncio.run(_start_on(Machine(folder, CLAIMS), junk, lost=lost))
    finally:
        shutil.rmtree(folder)


async def _start_on(node: Machine, junk: dict[str, bytes | str], *, lost: bool) -> None:
    node.start()
    await node.prepare(ref(4))
    node.stop()
    if lost:
        node.journal.unlink()
    for name, content in junk.items():
        _lay(node.cdi / name, content)
    node.start()
    assert set(node.book()) == {UIDS[4]}
    assert UIDS[4] in node.cdi_files()
    assert ("other" in node.cdi_files()) == ("other.json" in junk)
    swept = {f"{_PREFIX}{uid}.json" for uid in UIDS[:3]} & {
        n for n, c in junk.items() if c != "folder"
    }
    assert not swept & _names(node.cdi)
    await node.prepare(ref(0))
    assert {UIDS[0], UIDS[4]} == set(node.book())
    node.stop()


_WORDS = st.one_of(
    st.sampled_from(
        ["", ".", "..", "/", "../../etc/passwd", "a/b", "a\x00b", "default", "claim-0"]
    ),
    st.sampled_from(UIDS),
    st.text(max_size=12),
    st.just("u" * 5000),
)
_REQUESTS = st.one_of(
    st.lists(st.tuples(_WORDS, _WORDS, _WORDS), max_size=6).map(
        lambda claims: dra_v1_pb2.NodePrepareResourcesRequest(
            claims=[dra_v1_pb2.Claim(namespace=a, name=b, uid=c) for a, b, c in claims]
        ).SerializeToString()
    ),
    st.binary(max_size=60),
    # A claim whose UID is no UTF-8.
    st.just(b"\x0a\x04\x12\x02\xff\xfe"),
)
_METHODS = st.sampled_from(["NodePrepareResources", "NodeUnprepareResources"])


@settings(max_examples=15)
@given(st.lists(st.tuples(_METHODS, _REQUESTS), min_size=10, max_size=20))
def test_any_request_is_answered_and_touches_nothing_else(calls: list[tuple[str, bytes]]) -> None:
    """Odd bytes end their own call; odd UIDs are refused by name, and are no path."""
    folder = Path(tempfile.mkdtemp(prefix="q"))
    try:
        asyncio.run(_answer(Machine(folder / "n", CLAIMS[4:6]), folder, calls))
    finally:
        shutil.rmtree(folder)


async def _answer(node: Machine, folder: Path, calls: list[tuple[str, bytes]]) -> None:
    (folder / "n").mkdir()
    node.start()
    before = _names(folder)
    async with _served(node, folder) as channel:
        for method, request in calls:
            await _call(channel, method, request)
        for number in range(len(UIDS)):
            await node.unprepare(ref(number))
        assert (node.book(), node.cdi_files()) == ({}, set())
        await node.prepare(ref(4))
        assert node.cdi_files() == {UIDS[4]}
    assert _names(folder) - before <= {"s"}
    node.stop()


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@asynccontextmanager
async def _served(node: Machine, folder: Path) -> AsyncIterator[grpc.aio.Channel]:
    server = grpc.aio.server()
    work = (ClaimWork(4, node.prepare), ClaimWork(4, node.unprepare))
    add_services(server, preparing=work[0], unpreparing=work[1])
    server.add_insecure_port(f"unix:{folder}/s")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"unix:{folder}/s") as channel:
            yield channel
    finally:
        await server.stop(None)


async def _call(channel: grpc.aio.Channel, method: str, request: bytes) -> None:
    call: Any = channel.unary_unary(f"/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/{method}")
    try:
        answer = await call(request)
    except grpc.aio.AioRpcError as error:
        # What is no message is refused before it comes to us.
        assert error.code() in {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}  # noqa: PT017
        return
    asked = {one.uid for one in dra_v1_pb2.NodePrepareResourcesRequest.FromString(request).claims}
    assert set(dra_v1_pb2.NodePrepareResourcesResponse.FromString(answer).claims) == asked
