"""Preparing and unpreparing: in any order, any number of times, through crashes and reboots."""

import asyncio
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from driver.model.gpuconfig import Interval
from driver.model.resourceclaim import ResourceClaimConsumerReference
from driver.node.device import device_name
from driver.node.errors import ClaimRefusedError, DoubleUseError, StorageError
from driver.node.faults import FaultPoint
from driver.node.held import HeldDevice, PreparedClaim, conflict
from driver.node.state.checkpoint import drop, put
from driver.obs import tracing
from tests.node.builders import CLAIMS, UIDS, claim, prepared, ref, result
from tests.node.machine import CrashError, Machine


async def test_prepare_twice_is_prepare_once(tmp_path: Path) -> None:
    """The same answer, and nothing written again."""
    node = Machine(tmp_path, CLAIMS).start()
    first = await node.prepare(ref(3))
    journal, files = node.journal.read_bytes(), {p: p.stat() for p in node.cdi.iterdir()}
    assert await node.prepare(ref(3)) == first
    assert node.journal.read_bytes() == journal
    assert {path: path.stat().st_ino for path in node.cdi.iterdir()} == {
        path: status.st_ino for path, status in files.items()
    }
    node.stop()


async def test_unprepare_leaves_nothing_and_never_minds(tmp_path: Path) -> None:
    """Prepared, unprepared, never heard of, or not even a possible UID."""
    node = Machine(tmp_path, CLAIMS).start()
    await node.prepare(ref(0))
    for asked in (ref(0), ref(0), ref(5), ref(1)._replace(uid="../x")):
        await node.unprepare(asked)
    assert node.book() == {}
    assert node.cdi_files() == set()
    node.stop()


async def test_what_another_claim_holds_is_refused_and_reported(tmp_path: Path) -> None:
    """The last line of defence; it gives way when the other claim is unprepared."""
    node = Machine(tmp_path, CLAIMS).start()
    await node.prepare(ref(0))
    with pytest.raises(DoubleUseError, match="held whole by claim default/claim-0"):
        await node.prepare(ref(1))
    assert node.double_uses == [ref(1)]
    assert node.cdi_files() == {UIDS[0]}
    await node.unprepare(ref(0))
    await node.prepare(ref(1))
    await node.prepare(ref(2))
    with pytest.raises(DoubleUseError):
        await node.prepare(ref(3))
    node.stop()


async def test_of_many_at_once_only_what_fits_is_let_in(tmp_path: Path) -> None:
    """Decided under the lock, however the calls interleave; no loser has a file."""
    claims = [claim(n, result("gpu-2", memory="6Gi", cores="1")) for n in range(8)]
    node = Machine(tmp_path, claims).start()
    answers = await asyncio.gather(
        *(node.prepare(ref(n)) for n in range(8)), return_exceptions=True
    )
    assert sum(isinstance(answer, DoubleUseError) for answer in answers) == 6
    assert len(node.book()) == len(node.cdi_files()) == 2
    node.stop()


async def test_a_claim_that_is_allocated_anew_replaces_what_it_held(tmp_path: Path) -> None:
    """De-allocated and allocated again under the same UID, without the kubelet's unprepare."""
    node = Machine(tmp_path, CLAIMS).start()
    await node.prepare(ref(0))
    node.claims["claim-0"] = claim(0, result("gpu-3"))
    [device] = await node.prepare(ref(0))
    assert device.device == "gpu-3"
    await node.prepare(ref(1))
    node.stop()


async def test_a_lost_cdi_file_comes_back_with_the_next_prepare_and_with_a_restart(
    tmp_path: Path,
) -> None:
    """Somebody empties the folder; and a reboot does."""
    node = Machine(tmp_path, CLAIMS).start()
    answer = await node.prepare(ref(0))
    for path in node.cdi.iterdir():
        path.unlink()
    assert await node.prepare(ref(0)) == answer
    assert node.cdi_files() == {UIDS[0]}
    node.reboot()
    assert node.cdi_files() == {UIDS[0]}
    assert await node.prepare(ref(0)) == answer
    node.stop()


async def test_after_a_reboot_what_was_held_holds_nothing(tmp_path: Path) -> None:
    """No container of the old boot runs, so nobody is kept out by its claims."""
    node = Machine(tmp_path, CLAIMS).start()
    await node.prepare(ref(0))
    node.reboot()
    await node.prepare(ref(1))
    with pytest.raises(DoubleUseError):
        await node.prepare(ref(0))
    node.stop()


async def test_files_of_claims_that_are_not_held_are_swept_at_the_start(tmp_path: Path) -> None:
    """Also what a crash left under a temporary name; other drivers' files stay."""
    node = Machine(tmp_path, CLAIMS).start()
    await node.prepare(ref(0))
    node.stop()
    prefix = "k8s.gpu.quadrant.dev-claim_"
    (node.cdi / f"{prefix}{UIDS[4]}.json").write_text("{}")
    (node.cdi / f".{prefix}{UIDS[4]}.json.abc.tmp").write_text("{")
    (node.cdi / "other.json").write_text("{}")
    node.start()
    assert node.cdi_files() == {UIDS[0], "other"}
    node.stop()


@pytest.mark.parametrize("loss", ["removed", "cut to nothing", "zeroed", "first line damaged"])
async def test_a_lost_checkpoint_is_rebuilt_from_the_cdi_files(tmp_path: Path, loss: str) -> None:
    """Running pods keep their devices, and nobody else gets them."""
    node = Machine(tmp_path, CLAIMS).start()
    await node.prepare(ref(1))
    await node.prepare(ref(4))
    before = node.book()
    node.stop()
    if loss == "removed":
        node.journal.unlink()
    elif loss == "cut to nothing":
        node.journal.write_bytes(b"")
    elif loss == "zeroed":
        node.journal.write_bytes(b"\0" * 100 + b"\n")
    else:
        first, _, rest = node.journal.read_bytes().partition(b"\n")
        node.journal.write_bytes(first[:-9] + b"#" + first[-8:] + b"\n" + rest)
    node.start()
    assert node.store.is_lost(), "the API server has to be asked"
    assert node.book() == before
    with pytest.raises(DoubleUseError):
        await node.prepare(ref(0))
    node.stop()


async def test_a_release_whose_line_is_damaged_stays_a_release(tmp_path: Path) -> None:
    """The file was removed before the line was written, so its absence tells."""
    node = Machine(tmp_path, CLAIMS).start()
    await node.prepare(ref(0))
    await node.prepare(ref(4))
    await node.unprepare(ref(0))
    node.stop()
    lines = node.journal.read_bytes().splitlines()
    node.journal.write_bytes(b"\n".join([*lines[:-1], lines[-1][:-3] + b"###", b""]))
    node.start()
    assert set(node.book()) == {UIDS[4]}
    node.stop()


async def test_a_folder_that_takes_no_file_fails_the_claim_and_recovers(tmp_path: Path) -> None:
    """The reservation stays, because the kubelet will ask again or unprepare."""
    node = Machine(tmp_path, CLAIMS).start()
    node.cdi.rmdir()
    node.cdi.write_text("in the way")
    with pytest.raises(StorageError, match="cannot be written"):
        await node.prepare(ref(0))
    with pytest.raises(StorageError, match="cannot be removed"):
        await node.unprepare(ref(0))
    node.cdi.unlink()
    node.cdi.mkdir()
    await node.prepare(ref(0))
    await node.unprepare(ref(0))
    assert node.book() == {}
    node.stop()


_STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["prepare", "unprepare"]),
            st.integers(0, len(CLAIMS) - 1),
            st.one_of(st.none(), st.sampled_from(FaultPoint)),
        ),
        st.tuples(st.sampled_from(["restart", "reboot"]), st.just(0), st.none()),
    ),
    max_size=14,
)


@settings(max_examples=60, deadline=None)
@given(_STEPS)
def test_no_sequence_of_calls_crashes_and_reboots_goes_wrong(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, int, FaultPoint | None]],
) -> None:
    """No card is held twice, files and checkpoint agree, and in the end nothing is left."""
    asyncio.run(_go_through(Machine(tmp_path_factory.mktemp("node"), CLAIMS).start(), steps))


async def _go_through(node: Machine, steps: list[tuple[str, int, FaultPoint | None]]) -> None:
    for verb, number, fault in steps:
        node.fault = fault
        try:
            await _step(node, verb, number)
        except ClaimRefusedError:
            pass
        except CrashError:
            node.stop()
            node.start()
        node.fault = None
        _check(node)
    for number in range(len(CLAIMS)):
        await node.unprepare(ref(number))
    assert (node.book(), node.cdi_files(), node.settings()) == ({}, set(), {})
    node.stop()


async def _step(node: Machine, verb: str, number: int) -> None:
    if verb == "prepare":
        answer = await node.prepare(ref(number))
        assert UIDS[number] in node.cdi_files()
        assert await node.prepare(ref(number)) == answer
    elif verb == "unprepare":
        await node.unprepare(ref(number))
        assert UIDS[number] not in node.cdi_files()
    elif verb == "reboot":
        node.reboot()
    else:
        node.stop()
        node.start()


def _check(node: Machine) -> None:
    book = node.book()
    assert all(conflict(held, book.values()) is None for held in book.values())
    done = {uid for uid, held in book.items() if held.phase == "done"}
    assert done <= node.cdi_files() <= set(book)
    assert _parts_of_done(node) <= _parts_there(node) <= _parts_begun(node)
    for index, state in node.settings().items():
        wanted = {
            device.sharing.interval
            for held in book.values()
            for device in held.devices
            if device.index == index and device.sharing and held.boot == node.facts().boot
        }
        assert state.interval in {*wanted, Interval.DEFAULT}


Parts = set[tuple[str, str]]


def _parts_there(node: Machine) -> Parts:
    return {
        (device_name(card), f"{one.profile}@{one.start}")
        for card in node.facts().cards.values()
        for one in node.control.instances(card.uuid)
    }


def _parts_of_done(node: Machine) -> Parts:
    return _parts(node, lambda held, device: held.phase == "done" and bool(device.uuid))


def _parts_begun(node: Machine) -> Parts:
    return _parts(
        node, lambda _held, device: device.partition is not None and device.partition.begun
    )


def _parts(node: Machine, counts: Callable[[PreparedClaim, HeldDevice], bool]) -> Parts:
    return {
        (f"gpu-{device.index}", f"{device.partition.profile}@{device.partition.start}")
        for held in node.book().values()
        for device in held.devices
        if device.partition and held.boot == node.facts().boot and counts(held, device)
    }


async def test_every_fault_point_is_passed(tmp_path: Path) -> None:
    """The list of fault points is the code's own: one that nothing reaches tests nothing."""
    node = Machine(tmp_path, CLAIMS).start()
    for number in (0, 7):
        await node.prepare(ref(number))
        await node.unprepare(ref(number))
    for _ in range(300):
        node.store.locked(lambda _: put(prepared(1)))
    node.store.locked(lambda _: drop(UIDS[1]))
    assert set(node.passed) == set(FaultPoint)
    node.stop()


async def test_preparing_is_a_span_of_the_pods_trace(tmp_path: Path) -> None:
    """Also when it is refused; unprepared claims name no pod."""
    pod = str(uuid.uuid4())
    reserved = structs.replace(
        CLAIMS[0].status,
        reserved_for=(ResourceClaimConsumerReference(resource="pods", name="p", uid=pod),),
    )
    exporter = InMemorySpanExporter()
    tracing.use(SimpleSpanProcessor(exporter), "test")
    node = Machine(tmp_path, [structs.replace(CLAIMS[0], status=reserved)]).start()
    try:
        await node.prepare(ref(0))
        await node.unprepare(ref(0))
    finally:
        tracing.stop()
        node.stop()
    (found,) = exporter.get_finished_spans()
    assert (found.name, f"{found.context.trace_id:032x}") == ("prepare", pod.replace("-", ""))
