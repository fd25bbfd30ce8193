"""The CDI files of our claims in one folder: written whole, removed, found again after a restart.

Blocking; called in threads. What is in the files is `driver.node.containers.cdi`'s business.
Nothing is synced to the disk, and the folder is usually in memory: after a power cut no container
is left, and the kubelet has every claim prepared again, which looks at each byte. The checkpoint is
synced.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import structlog

from driver.node.containers import cdi
from driver.node.containers.metadatafiles import MetadataFiles
from driver.node.errors import StorageError
from driver.node.faults import FaultPoint, Reach, pass_by
from driver.node.files import TEMPORARY, replace_file
from driver.node.held import PreparedClaim

# The container runtime may run as another user.
_MODE = 0o644

log = structlog.get_logger(__name__)


class CdiFiles:
    """One file per claim, in a folder that other drivers write to as well."""

    def __init__(
        self, folder: Path, driver: str, *, metadata: MetadataFiles, reach: Reach = pass_by
    ) -> None:
        self._folder = folder
        self._metadata = metadata
        self._driver = driver
        self._reach = reach
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, claim: PreparedClaim) -> None:
        """Have the claim's file there; one that is right already is left alone.

        What it has containers read is there before it. Raises `StorageError`; the file is then the
        old one or the new one.
        """
        self._metadata.write(claim)
        path, data = self._path(claim.uid), cdi.document(self._driver, claim)
        try:
            if path.exists() and path.read_bytes() == data:
                return
            replace_file(
                path,
                data,
                mode=_MODE,
                before_rename=lambda: self._reach(FaultPoint.CDI_WRITTEN),
                after_rename=lambda: self._reach(FaultPoint.CDI_IN_PLACE),
                durable=False,
            )
        except OSError as error:
            raise StorageError(f"CDI file {path} cannot be written: {error}") from error

    def remove(self, uid: str) -> None:
        """Have the claim's file gone; raises `StorageError` when it is still there."""
        path = self._path(uid)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"CDI file {path} cannot be removed: {error}") from error
        self._metadata.remove(uid)
        self._reach(FaultPoint.CDI_REMOVED)

    def exists(self, uid: str) -> bool:
        """Whether the claim has a file."""
        return self._path(uid).exists()

    def claims(self) -> Iterator[PreparedClaim]:
        """The claims that files were made for; a file that cannot be read is skipped."""
        for path, uid in list(self._files()):
            try:
                claim = cdi.claim_of(path.read_bytes())
            except (OSError, msgspec.MsgspecError) as error:
                log.warning("CDI file cannot be read", file=str(path), error=str(error))
                continue
            if claim.uid == uid:
                yield claim

    def sweep(self, keep: frozenset[str], *, alone: bool) -> tuple[str, ...]:
        """Remove the files of all claims but `keep`, and what a crash left of writing them.

        The caller holds the checkpoint's lock, so that no claim can become held meanwhile. Unless
        `alone`, another instance may just be writing the file of a held claim. What cannot be
        removed is logged. Raises `OSError` when the folder cannot be read.
        """
        dead = [path for path, uid in self._files() if uid not in keep]
        dead += [path for path, uid in self._unfinished() if alone or uid not in keep]
        gone = tuple(path.name for path in dead if _unlinked(path))
        self._metadata.sweep(keep)
        return gone

    def _path(self, uid: str) -> Path:
        return self._folder / cdi.file_name(self._driver, uid)

    def _files(self) -> Iterator[tuple[Path, str]]:
        prefix = cdi.file_prefix(self._driver)
        for path in self._folder.glob(f"{prefix}*.json"):
            yield path, path.name.removeprefix(prefix).removesuffix(".json")

    def _unfinished(self) -> Iterator[tuple[Path, str]]:
        prefix = f".{cdi.file_prefix(self._driver)}"
        for path in self._folder.glob(f"{prefix}*{TEMPORARY}"):
            yield path, path.name.removeprefix(prefix).partition(".json.")[0]


def _unlinked(path: Path) -> bool:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        log.warning("CDI file cannot be removed", file=str(path), error=str(error))
        return False
    return True
