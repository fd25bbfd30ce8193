"""What a starting plugin makes of what the last one left: the checkpoint and the CDI files.

Every step runs under the checkpoint's lock, so that a second instance cannot prepare meanwhile.
"""

import structlog

from driver.node.containers.cdifiles import CdiFiles
from driver.node.errors import StorageError
from driver.node.held import PreparedClaim
from driver.node.state.checkpoint import Book, Record, drop, put
from driver.node.state.store import Change, ClaimStore

log = structlog.get_logger(__name__)


def recover(store: ClaimStore, files: CdiFiles, *, boot: str) -> None:
    """Have the CDI files of exactly the held claims there.

    Checkpoint whole: files of claims that it does not know are removed, missing ones are made.
    Checkpoint lost or damaged: the files are believed first, because a file stands for its claim
    from before the first container starts until after the last has ended. It stays `is_lost`,
    because claims may be in neither: the API server has to be asked (`driver.node.state.adopt`).

    Raises `StorageError` when the checkpoint cannot be written. A CDI file that cannot be written
    or removed is only logged: preparing its claim tries again.
    """
    if not _held(store) and any(files.claims()):
        # A file is never there without its line. This checkpoint was emptied, not worked off.
        store.lose()
    if store.is_lost():
        _rebuild(store, files, boot)
    store.locked(lambda book: _heal(book, files, boot))
    store.locked(lambda book: _sweep(book, files, alone=store.alone))


def _rebuild(store: ClaimStore, files: CdiFiles, boot: str) -> None:
    described = list(files.claims())
    for claim in described:
        store.locked(_believe_file(claim))
    for claim in _held(store):
        store.locked(_doubt(claim, files, boot))
    if store.is_new and not described:
        # On a new node nothing was ever held, and nobody needs to be asked.
        store.settle()


def _held(store: ClaimStore) -> list[PreparedClaim]:
    held: list[PreparedClaim] = []
    store.locked(lambda book: held.extend(book.claims()))
    return held


def _believe_file(described: PreparedClaim) -> Change:
    def change(book: Book) -> Record | None:
        return put(described) if book.get(described.uid) is None else None

    return change


def _doubt(claim: PreparedClaim, files: CdiFiles, boot: str) -> Change:
    """The line that a claim was released may be the damaged one; its file went before that.

    The files of an earlier boot prove nothing: the folder is usually in memory.
    """

    def change(_book: Book) -> Record | None:
        released = claim.boot == boot and claim.phase == "done" and not files.exists(claim.uid)
        return drop(claim.uid) if released else None

    return change


def _heal(book: Book, files: CdiFiles, boot: str) -> None:
    for claim in book.claims():
        try:
            there = files.exists(claim.uid)
            # What is left of an earlier boot may have been cut short with the power.
            if claim.phase == "done" and (claim.boot != boot or not there):
                files.write(claim)
                if not there:
                    log.info("made a missing CDI file", claim=str(claim))
        except StorageError as error:
            log.warning("missing CDI file not made", claim=str(claim), error=str(error))


def _sweep(book: Book, files: CdiFiles, *, alone: bool) -> None:
    held = frozenset(claim.uid for claim in book.claims())
    try:
        for name in files.sweep(held, alone=alone):
            log.info("removed the CDI file of a claim that is not prepared", file=name)
    except OSError as error:
        log.warning("CDI files not swept", error=str(error))
