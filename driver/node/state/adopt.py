"""After a lost checkpoint: what the API server says is held here.

The CDI files come first (`driver.node.state.recover`): they say what was prepared. A claim that
has no file any more but is allocated devices of this node and reserved for a pod may be in use all
the same. So it is entered as well, marked as found: should the kubelet never unprepare it, it is
let go of when its allocation ends (`driver.node.occupied`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

import msgspec
import structlog

from driver.model.resourceclaim import ResourceClaim
from driver.node.claims import ClaimRef, NodeFacts, entry
from driver.node.errors import ClaimRefusedError, StorageError
from driver.node.held import PreparedClaim, conflict
from driver.node.state.checkpoint import Book, Record, put
from driver.node.state.store import ClaimStore

_RETRY_S = 5.0

# Those of all claims in the cluster for which it is so.
Ask = Callable[[Callable[[ResourceClaim], bool]], Awaitable[Iterable[ResourceClaim]]]

log = structlog.get_logger(__name__)


def concerns(claim: ResourceClaim, facts: NodeFacts) -> bool:
    """Whether a claim is reserved for a pod and has devices of this node."""
    allocation = claim.status.allocation
    if allocation is None or not claim.status.reserved_for:
        return False
    return any(
        result.driver == facts.driver and result.pool == facts.pool
        for result in allocation.devices.results
    )


async def find_lost(store: ClaimStore, ask: Ask, facts: NodeFacts) -> None:
    """Have in the checkpoint again what can be known of claims that it lost.

    Nothing is asked where nothing is lost. A disk that does not take it is tried again: until then
    no claim may be prepared, because its devices may be in use.
    """
    while store.is_lost():
        try:
            await adopt(store, await ask(lambda claim: concerns(claim, facts)), facts)
            await asyncio.to_thread(store.settle)
        except StorageError as error:
            log.warning("lost claims not entered; trying again", error=str(error))
            await asyncio.sleep(_RETRY_S)


async def adopt(store: ClaimStore, claims: Iterable[ResourceClaim], facts: NodeFacts) -> None:
    """Enter the claims, which concern this node, as far as they are not known.

    One that wants what another holds stays out: what was prepared first is in use. Raises
    `StorageError`.
    """
    for claim in claims:
        meta = claim.metadata
        asked = ClaimRef(meta.namespace, meta.name, meta.uid)
        try:
            found = msgspec.structs.replace(entry(asked, claim, facts), found=True)
        except ClaimRefusedError as error:
            log.warning("claim of the API not entered", claim=str(asked), error=str(error))
            continue
        await store.apply(partial(_enter, found=found))


def _enter(book: Book, found: PreparedClaim) -> Record | None:
    if book.get(found.uid) is not None:
        return None
    reason = conflict(found, book.rivals(found))
    if reason is not None:
        log.error("claim of the API not entered", claim=str(found), reason=reason)
        return None
    log.info("entered a claim that the API server says is in use here", claim=str(found))
    return put(found)
