"""What a card's health means for those who ask: a taint, a word for the kubelet, a sentence.

Pure.
"""

import datetime as dt
from typing import Literal

from driver.model.names import UNHEALTHY_TAINT
from driver.model.resourceslice import DeviceTaint
from driver.node.board import time_of
from driver.node.health.card import UNANSWERED, CardHealth
from driver.node.settings import Effect

Status = Literal["Healthy", "Unhealthy", "Unknown"]


def taint(card: CardHealth, *, driver: str, effect: Effect) -> DeviceTaint | None:
    """What keeps pods away from a card; None when it is well.

    Its time is that of the oldest problem: a card does not become ill anew by a further one. Not
    to know how a card is evicts nobody.
    """
    if not card.problems:
        return None
    known = [problem for problem in card.problems if problem.reason != UNANSWERED]
    since = min(problem.since for problem in known or card.problems)
    return DeviceTaint(
        key=f"{driver}/{UNHEALTHY_TAINT}",
        value=card.problems[0].reason,
        effect=effect if known else "NoSchedule",
        time_added=time_of(moment(since)),
    )


def status(card: CardHealth) -> Status:
    """One word; a card of which nothing was read yet is unknown."""
    if any(problem.reason != UNANSWERED for problem in card.problems):
        return "Unhealthy"
    return "Unknown" if card.problems or card.known_at is None else "Healthy"


def message(card: CardHealth) -> str:
    """All problems, worst first; what is not watched of a card that is well; else ""."""
    if card.problems:
        return "; ".join(
            f"{problem.message} (since {time_of(moment(problem.since))})"
            for problem in card.problems
        )
    if card.reading is not None and not card.reading.has_events:
        return "XIDs of this card are not reported; it is polled only"
    return ""


def moment(seconds: float) -> dt.datetime:
    """Seconds since the epoch as a moment."""
    return dt.datetime.fromtimestamp(seconds, dt.UTC)
