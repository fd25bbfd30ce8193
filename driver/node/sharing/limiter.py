"""The folders that HAMi-core needs for the claims whose limits it keeps. Blocking."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from driver.node.errors import StorageError
from driver.node.held import Limiter
from driver.node.sharing.edits import lock_folder

# Containers run as any user, and the library runs in them.
_OPEN_MODE = 0o1777


def create(limiter: Limiter) -> None:
    """Have the claim's state folder and the common lock folder there; raises `StorageError`."""
    for path in (Path(lock_folder(limiter.state)), Path(limiter.state)):
        try:
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(_OPEN_MODE)
        except OSError as error:
            raise StorageError(f"folder {path} for HAMi-core cannot be made: {error}") from error


def remove(limiter: Limiter) -> None:
    """Have the claim's state gone; raises `StorageError` when it is still there."""
    try:
        shutil.rmtree(limiter.state)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageError(f"{limiter.state} cannot be removed: {error}") from error


def sweep(folder: Path, held: Iterable[str]) -> None:
    """Remove the state of all claims but those with these UIDs."""
    keep = {*held, Path(lock_folder(str(folder / "any"))).name}
    if folder.is_dir():
        for path in folder.iterdir():
            if path.name not in keep:
                shutil.rmtree(path, ignore_errors=True)
