"""Whether this process may answer commits now (design, "High availability" and rule 5).

Pure: told what happens to the lease, on a monotonic clock in seconds. A process may answer from the
moment at which no answer of an earlier leader can land any more, until its own renew deadline.

A clock that stands still, as that of a paused virtual machine, cannot tell that the deadline has
passed. Hence `doubt`: after a sign of another leader only a renewal that began later counts.
"""

from driver.kube.lease import Timing

# No answer of an earlier leader lands later than this: the API server bounds a write at 34 s.
EARLIER_ANSWERS_LAND_WITHIN_S = 36.0


class Term:
    """One process's right to answer. It begins without."""

    def __init__(self) -> None:
        self._until = float("-inf")
        self._from = float("inf")
        self._least = float("-inf")

    def renewed(self, deadline: float) -> None:
        """The lease is ours until this moment at least, unless it is renewed again."""
        if deadline >= self._least:
            self._until = deadline

    def doubt(self, now: float) -> None:
        """Another process may lead: do not answer before a renewal that began after this moment."""
        self._until = float("-inf")
        self._least = now + Timing().renew_deadline

    @property
    def begun(self) -> bool:
        """Whether it is known from when on this process may answer, if the lease is its own."""
        return self._from < float("inf")

    def begin(self, *, after: float) -> None:
        """Earlier leaders' answers are over, and the ledger is complete, from `after` on."""
        self._from = min(self._from, after)

    def end(self) -> None:
        """The lease is lost or given back: never answer again without a new beginning."""
        self._until = float("-inf")
        self._from = float("inf")

    def taking_over(self, now: float) -> bool:
        """Whether the lease is ours, and the right to answer has yet to begin."""
        return self._from > now < self._until

    def refusal(self, now: float) -> str | None:
        """Why a commit must be refused now, in words for the scheduler's events; or None."""
        if now >= self._until:
            return "this replica of the Quadrant controller is not the leader; it will be retried"
        if now < self._from:
            wait = "" if self._from == float("inf") else f" for {self._from - now:.0f} s"
            return (
                "the Quadrant controller has just become leader and waits"
                f"{wait} until no earlier answer can land; it will be retried"
            )
        return None
