"""A sign that another replica leads: a mark on a claim that only leaders write, and not by us.

Every leader begins with one. The watch of claims shows changes in the order in which they were
made, so whoever has been shown a later version of any claim has been shown the mark before.
"""

from collections.abc import Callable

import structlog

from driver.controller.claims import ClaimWriter
from driver.controller.term import Term
from driver.model import names
from driver.model.resourceclaim import ResourceClaim

_log = structlog.get_logger(__name__)


class Rivals:
    """Looks at every change of a claim; `clock` gives monotonic seconds."""

    def __init__(self, writer: ClaimWriter, term: Term, *, clock: Callable[[], float]) -> None:
        self._writer = writer
        self._term = term
        self._clock = clock

    def look(self, claim: ResourceClaim, *, before: ResourceClaim | None) -> None:
        """A claim as it is now, and as it was known to be; doubts our term at a foreign mark."""
        mark = claim.metadata.annotations.get(names.FENCE, "")
        known = before.metadata.annotations.get(names.FENCE, "") if before is not None else ""
        if mark == known or not self._writer.is_rival(mark):
            return
        if self._term.refusal(now := self._clock()) is None:
            _log.warning("another replica seems to lead; no answers until the lease is renewed")
        self._term.doubt(now)
