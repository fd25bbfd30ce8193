"""A scorer that is not ours: what it returns is looked at before anything rests on it."""

import math

from driver.model.allocation import Score
from driver.model.errors import AllocationError
from driver.policy.view import Choice, NodeView, Scorer


class ScorerError(AllocationError):
    """A scorer of others failed. Whoever allocates falls back to the scheduler's own choice."""


class Foreign:
    """Calls a scorer of others; what it raises, or returns that is no score, is `ScorerError`."""

    def __init__(self, name: str, scorer: Scorer) -> None:
        self._name = name
        self._scorer = scorer

    def score(self, view: NodeView, choice: Choice) -> Score:
        """What the scorer says."""
        try:
            found: object = self._scorer.score(view, choice)
        except Exception as error:
            raise ScorerError(
                f"policy {self._name!r} failed on node {view.name}: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(found, Score) or not math.isfinite(found.total):
            raise ScorerError(
                f"policy {self._name!r} returned {found!r:.80} for node {view.name}: expected a "
                "driver.model.allocation.Score with a finite total"
            )
        return found
