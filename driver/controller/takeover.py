"""From winning the lease to the first answer: no answer of an earlier leader may still land.

The design waits 36 s (rule 5). There is a quicker proof: an answer rests on one version of a claim
that is free. Once the earlier leader has stopped, every claim that a consistent list shows free is
moved to a new version. Whatever was answered before then rests on a version that is gone.
"""

import asyncio
from collections.abc import Collection, Iterable
from itertools import islice

import structlog

from driver.controller.claims import ClaimWriter
from driver.controller.term import EARLIER_ANSWERS_LAND_WITHIN_S
from driver.kube.errors import KubeError
from driver.kube.informer import Informer
from driver.model.ids import ObjectKey
from driver.model.resourceclaim import ResourceClaim

_log = structlog.get_logger(__name__)

# With more free claims than this, waiting is quicker than writing.
MOST_FENCES = 2000
AT_ONCE = 16
AGAIN_S = 0.5
ANNOUNCE_TRIES = 5


async def take_over(
    claims: Informer[ResourceClaim], writer: ClaimWriter, *, silent_from: float
) -> None:
    """Return when no answer of an earlier leader can land, and `claims` has told of all that did.

    From `silent_from` on, of the event loop's clock, no other replica answers.
    """
    now = asyncio.get_running_loop().time
    await asyncio.sleep(max(0.0, silent_from - now()))
    began = now()
    await _announce(claims.objects, writer)
    await claims.relist()
    listed = now()
    landed = silent_from + EARLIER_ANSWERS_LAND_WITHIN_S
    free = [claim for claim in claims.objects.values() if claim.status.allocation is None]
    fenced = await fence_all(free, writer, until=landed)
    if not fenced:
        await asyncio.sleep(max(0.0, landed - now()))
    proven = now()
    # A fence that came too late was beaten by the answer itself, perhaps; the watch may be slow to
    # tell of it, and until then its devices would look free.
    await claims.relist()
    _log.info(
        "no earlier answer can land",
        by="fences" if fenced else "waiting",
        free_claims=len(free),
        list_s=round(listed - began, 3),
        proof_s=round(proven - listed, 3),
        list_again_s=round(now() - proven, 3),
    )


async def _announce(claims: Iterable[ObjectKey], writer: ClaimWriter) -> None:
    """Let a leader whose clock stood still notice that it is none, before it is asked anything new.

    One mark is enough; it precedes the list. Where there is no claim to be marked, nothing is done.
    """
    # A list: the watch goes on changing what it shows while a write is under way.
    for claim in list(islice(claims, ANNOUNCE_TRIES)):
        try:
            await writer.announce(claim)
        except KubeError as error:
            _log.info("take-over not announced yet", claim=str(claim), error=str(error))
        else:
            return


async def fence_all(free: Collection[ResourceClaim], writer: ClaimWriter, *, until: float) -> bool:
    """Move these free claims to new versions; whether that is proven for all of them.

    A claim that moved on by itself, or is gone, is as good as moved: what was answered on the
    version in the list cannot land either way. A write that fails is tried again; at `until`, of
    the event loop's clock, waiting has proven as much, and the rest is left.
    """
    if len(free) > MOST_FENCES:
        return False
    places = asyncio.Semaphore(AT_ONCE)

    async def fence(claim: ResourceClaim) -> None:
        async with places:
            while not await _fenced(claim, writer):  # noqa: ASYNC110 # it is a write, no event
                await asyncio.sleep(AGAIN_S)

    try:
        async with asyncio.timeout_at(until):
            await asyncio.gather(*(fence(claim) for claim in free))
    except TimeoutError:
        return False
    return True


async def _fenced(claim: ResourceClaim, writer: ClaimWriter) -> bool:
    key = ObjectKey(claim.metadata.namespace, claim.metadata.name)
    try:
        await writer.fence(key, claim.metadata.uid, int(claim.metadata.resource_version))
    except KubeError as error:
        _log.info("claim not fenced yet", claim=str(key), error=str(error))
        return False
    return True
