"""Answers that were never seen to land: a live look, a fence, and only then they fall (rule 4)."""

import structlog

from driver.controller.claims import ClaimWriter
from driver.controller.ledger import Answer, Ledger

_log = structlog.get_logger(__name__)


async def settle(answer: Answer, *, ledger: Ledger, claims: ClaimWriter, now: float) -> None:
    """Find out what became of an overdue answer; the ledger keeps it when that is not certain.

    Raises `driver.kube.errors.KubeError` when the API server does not answer: try again later.
    """
    claim = await claims.get(answer.claim)
    if claim is None or claim.metadata.uid != answer.uid:
        ledger.gone(answer.uid, now)
        return
    if int(claim.metadata.resource_version) == answer.key.base:
        fenced = await claims.fence(answer.claim, answer.uid, answer.key.base)
        if fenced is None:
            return  # it moved on just now: the watch tells, or the next look does
        claim = fenced
    ledger.observe(claim, now)
    _log.info("answer never landed", claim=str(answer.claim), base=answer.key.base)
