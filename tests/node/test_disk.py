"""A disk that is full or read-only: prepare fails with the reason, and works when that is over."""

import asyncio
import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from driver.node.errors import StorageError
from tests.node.builders import CLAIMS, UIDS, ref
from tests.node.machine import Machine

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a disk needs root")

# Runs one of the tests below in a mount namespace of its own: no mount of a test is seen outside.
_SCRIPT = """
import asyncio, sys
from pathlib import Path
from tests.node import test_disk
test_disk.unshare_mounts()
asyncio.run(getattr(test_disk, sys.argv[1])(Path(sys.argv[2])))
"""
_CLONE_NEWNS = 0x00020000
_MS_RDONLY, _MS_REMOUNT, _MS_REC, _MS_PRIVATE = 1, 32, 16384, 1 << 18
_LIBC = ctypes.CDLL(None, use_errno=True)


def unshare_mounts() -> None:
    """What this process mounts from now on is its own."""
    _done(_LIBC.unshare(_CLONE_NEWNS))
    _mount(Path("/"), "", _MS_REC | _MS_PRIVATE)


def _mount(at: Path, kind: str, flags: int, options: str = "") -> None:
    _done(_LIBC.mount(b"none", bytes(at), kind.encode(), flags, options.encode()))


def _done(status: int) -> None:
    if status:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@pytest.mark.parametrize("case", ["full_under_prepare", "full_under_unprepare", "read_only"])
def test_a_bad_disk_is_told_and_is_over_when_it_is_over(case: str, tmp_path: Path) -> None:
    """On a small file system in memory that is mounted for it."""
    command = [sys.executable, "-c", _SCRIPT, case, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if "PermissionError: [Errno 1]" in run.stderr and "unshare_mounts" in run.stderr:
        pytest.skip("this machine does not let root make a mount namespace")
    assert run.returncode == 0, run.stderr


def _disk(folder: Path) -> Machine:
    """A node on a disk of 128 KiB, which holds claim 4 (gpu-1)."""
    _mount(folder, "tmpfs", 0, "size=128k")
    return Machine(folder, CLAIMS).start()


def _fill(folder: Path) -> Path:
    """Leave no byte on the disk; the file to remove afterwards."""
    rest = folder / "rest"
    with rest.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 512)
        except OSError:
            return rest


async def full_under_prepare(folder: Path) -> None:
    """Nothing of the claim is left behind; the one before is untouched; a restart changes none."""
    node = _disk(folder)
    await node.prepare(ref(4))
    before = (node.book(), node.cdi_files())
    rest = _fill(folder)
    for _ in range(3):
        # The journal may fit into its last page, the CDI file does not.
        with pytest.raises(StorageError, match=r"cannot be written: .*No space left"):
            await node.prepare(ref(0))
    rest.unlink()
    assert {UIDS[4]} <= set(node.book()) <= {UIDS[0], UIDS[4]}
    assert node.cdi_files() == before[1]
    await node.prepare(ref(0))
    assert node.cdi_files() == {UIDS[0], UIDS[4]}
    await asyncio.gather(node.unprepare(ref(0)), node.unprepare(ref(4)))
    assert (node.book(), node.cdi_files()) == ({}, set())


async def full_under_unprepare(folder: Path) -> None:
    """Pods can end: what little is written for that goes through, or is told and repeated."""
    node = _disk(folder)
    await node.prepare(ref(4))
    rest = _fill(folder)
    try:
        await node.unprepare(ref(4))
    except StorageError as error:
        assert "No space left" in str(error)  # noqa: PT017  (both are right)
    rest.unlink()
    await node.unprepare(ref(4))
    assert (node.book(), node.cdi_files()) == ({}, set())


async def read_only(folder: Path) -> None:
    """As the kernel makes a disk that has failed."""
    node = _disk(folder)
    await node.prepare(ref(4))
    _mount(folder, "tmpfs", _MS_REMOUNT | _MS_RDONLY)
    with pytest.raises(StorageError, match="Read-only file system"):
        await node.prepare(ref(0))
    with pytest.raises(StorageError, match="Read-only file system"):
        await node.unprepare(ref(4))
    assert await node.prepare(ref(4)), "what is prepared needs no write"
    _mount(folder, "tmpfs", _MS_REMOUNT)
    await node.prepare(ref(0))
    await node.unprepare(ref(4))
    assert set(node.book()) == node.cdi_files() == {UIDS[0]}
