"""What is wrong with one card, from what was heard and read of it, and when that is over.

Pure. Times are seconds since the epoch: they outlive the process. A problem ends

- lost: when the card has answered for a while. It was reset meanwhile, so its XIDs end with it.
- xid-N: after a quiet time, unless only a reset undoes it. Where the card says which recovery it
  needs, that decides in place of our list; when it says so no more, it was reset.
- ecc: when the counter falls, which only a reset brings about; or, after a quiet time, when the
  card itself says that it needs no recovery.
- needs-…, remap: when the card no longer says so.
- unanswered: when hardware as a whole answers again.
"""

from collections.abc import Iterable

import msgspec
from msgspec import structs

from driver.node.health.port import NO_RECOVERY, Reading
from driver.node.health.xids import FATAL, OF_PROGRAMS, named

LOST, UNANSWERED, ECC, REMAP = "lost", "unanswered", "ecc", "remap"
_NEEDS, _XID = "needs-", "xid-"
# So many seconds a card must have answered to count as back: some come and go.
_SETTLE_S = 10.0


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator may choose."""

    ignored_xids: frozenset[int] = OF_PROGRAMS
    # Seconds without a further XID after which one that asks for no reset is over.
    quiet_s: float = 300.0


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong; `reason` is short and fit for the value of a taint."""

    reason: str
    message: str
    # When it came up, and when it was last heard of or seen.
    since: float
    last: float


class CardHealth(msgspec.Struct, frozen=True, kw_only=True):
    """One card: its problems, worst first, and what the last reading said."""

    problems: tuple[Problem, ...] = ()
    reading: Reading | None = None
    # Uncorrected errors when it last told them.
    uncorrected: int | None = None
    # When it was last known how the card is; None: not yet.
    known_at: float | None = None


def after_xid(card: CardHealth, number: int, at: float, rules: Rules) -> CardHealth:
    """The card once the driver has reported an XID of it."""
    if number in rules.ignored_xids:
        return card
    return _with(card, _seen(card, f"{_XID}{number}", named(number), at))


def after_silence(card: CardHealth, why: str, at: float) -> CardHealth:
    """The card while hardware as a whole does not answer: nobody knows how it is."""
    return _with(card, _seen(card, UNANSWERED, why, at))


def after_reading(card: CardHealth, reading: Reading, at: float, rules: Rules) -> CardHealth:
    """The card as it was just read: new problems, and the end of old ones."""
    card = structs.replace(card, problems=tuple(_not_after(old, at) for old in card.problems))
    found = tuple(_found(card, reading, at))
    shown = {problem.reason for problem in found}
    was_reset = _was_reset(card, reading, at)
    others = (old for old in card.problems if old.reason not in shown)
    stays = (old for old in others if old.reason == LOST or not was_reset)
    kept = [old for old in stays if _lasts(old, reading, at, rules)]
    return CardHealth(
        problems=_ranked([*kept, *found]),
        reading=reading,
        uncorrected=card.uncorrected if reading.uncorrected is None else reading.uncorrected,
        known_at=at,
    )


def _not_after(old: Problem, at: float) -> Problem:
    """A clock that was set back must not keep a problem for as long as it was set back by."""
    return old if old.last <= at else structs.replace(old, last=at)


def _found(card: CardHealth, reading: Reading, at: float) -> Iterable[Problem]:
    """What the reading itself shows."""
    if reading.lost is not None:
        yield _seen(card, LOST, f"does not answer: {reading.lost}", at)
    if reading.recovery not in (None, NO_RECOVERY):
        yield _seen(card, f"{_NEEDS}{reading.recovery}", f"asks for {reading.recovery}", at)
    if reading.remap_failed:
        yield _seen(card, REMAP, "a bad row of memory could not be replaced", at)
    count = reading.uncorrected or 0
    # Of errors before the first reading, a card that can tells itself whether they matter.
    is_new = card.uncorrected is not None and count > card.uncorrected
    if is_new or (count and reading.recovery is None):
        yield _seen(card, ECC, f"{count} uncorrected memory errors since the last reset", at)


def _was_reset(card: CardHealth, reading: Reading, at: float) -> bool:
    """Whether the card has been reset since the last reading."""
    if reading.lost is not None:
        return False
    asked = card.reading.recovery if card.reading is not None else None
    if asked not in (None, NO_RECOVERY) and reading.recovery == NO_RECOVERY:
        return True
    away = next((problem for problem in card.problems if problem.reason == LOST), None)
    if away is not None and at - away.last >= _SETTLE_S:
        return True
    return reading.uncorrected is not None and reading.uncorrected < (card.uncorrected or 0)


def _lasts(old: Problem, reading: Reading, at: float, rules: Rules) -> bool:
    """Whether a problem that the reading does not show goes on all the same."""
    if old.reason == LOST:
        return at - old.last < _SETTLE_S
    if reading.lost is not None:
        # Nothing can be said of a card that does not answer.
        return old.reason != UNANSWERED
    if old.reason == ECC and reading.recovery is not None:
        return bool(reading.uncorrected) and at - old.last < rules.quiet_s
    if not old.reason.startswith(_XID):
        return False
    needs_reset = reading.recovery is None and _number(old) in FATAL
    return needs_reset or at - old.last < rules.quiet_s


def _number(problem: Problem) -> int:
    return int(problem.reason.removeprefix(_XID))


def _seen(card: CardHealth, reason: str, message: str, at: float) -> Problem:
    old = next((problem for problem in card.problems if problem.reason == reason), None)
    return Problem(reason=reason, message=message, since=old.since if old else at, last=at)


def _with(card: CardHealth, problem: Problem) -> CardHealth:
    others = (old for old in card.problems if old.reason != problem.reason)
    return structs.replace(card, problems=_ranked([*others, problem]))


def _ranked(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda problem: (_rank(problem.reason), problem.since)))


def _rank(reason: str) -> int:
    order = (LOST, _NEEDS, REMAP, ECC, _XID, UNANSWERED)
    return next(n for n, start in enumerate(order) if reason.startswith(start))
