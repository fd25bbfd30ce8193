"""The metadata files of our claims: one folder for each claim, which is there before its CDI file.

Blocking; called in threads. What is in the files is `driver.node.containers.metadata`'s business.
Nothing is synced to the disk: after a power cut no container is left, and the next prepare looks
again.
"""

import secrets
import shutil
from pathlib import Path

import structlog

from driver.node.containers.metadata import documents, host_path
from driver.node.errors import StorageError
from driver.node.files import TEMPORARY
from driver.node.held import PreparedClaim

log = structlog.get_logger(__name__)

# Programs in containers read it, whoever they run as.
_FILE, _FOLDER = 0o644, 0o755


class MetadataFiles:
    """All that is below one folder, which nobody else uses."""

    def __init__(self, folder: Path, driver: str) -> None:
        self._folder = folder
        self._driver = driver

    def write(self, claim: PreparedClaim) -> None:
        """Have the claim's files there, if it has any; raises `StorageError`."""
        if claim.metadata is None:
            return
        folder = Path(claim.metadata.folder)
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=_FOLDER)
            for request, data in documents(self._driver, claim).items():
                _replace(Path(host_path(claim, request)), data)
        except OSError as error:
            raise StorageError(f"metadata in {folder} cannot be written: {error}") from error

    def remove(self, uid: str) -> None:
        """Have the claim's files gone; raises `StorageError` when some are still there."""
        folder = self._folder / uid
        try:
            shutil.rmtree(folder)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StorageError(f"metadata in {folder} cannot be removed: {error}") from error

    def sweep(self, keep: frozenset[str]) -> None:
        """Remove the files of all claims but `keep`; what cannot be removed is logged."""
        found = self._folder.iterdir() if self._folder.is_dir() else ()
        for uid in sorted({path.name for path in found} - keep):
            try:
                self.remove(uid)
            except StorageError as error:
                log.warning("metadata of a claim that is not prepared is left", error=str(error))


def _replace(path: Path, data: bytes) -> None:
    if path.exists() and path.read_bytes() == data:
        return
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
    temporary.write_bytes(data)
    temporary.chmod(_FILE)
    temporary.rename(path)
