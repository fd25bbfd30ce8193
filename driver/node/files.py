"""Files that are either all there or not there, also after a power cut."""

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

# Neither the CDI loaders nor we take a file with this ending for the real one.
TEMPORARY = ".tmp"


def replace_file(
    path: Path,
    data: bytes,
    *,
    mode: int = 0o600,
    before_rename: Callable[[], None] = lambda: None,
    after_rename: Callable[[], None] = lambda: None,
    durable: bool = True,
) -> None:
    """Write a file whole: temporary name, sync, rename, sync of the folder.

    One that is not `durable` is not synced: whole for whoever looks, until the power fails.

    Raises `OSError`; the file is then as it was, or already the new one. The temporary name is
    random: two instances of the plugin may write the same file, and both may be process 1 of
    their container.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        before_rename()
        temporary.rename(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise
    after_rename()
    if durable:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make new and removed names of a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
