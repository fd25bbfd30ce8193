"""A policy: scorers in the order in which they decide; later ones break ties of earlier ones."""

import msgspec

from driver.model.allocation import Score
from driver.policy.view import Choice, NodeView, Scorer

# Scores that differ less are equal: the order in which terms are added must not decide.
_DIGITS = 9


class Policy(msgspec.Struct, frozen=True):
    """One axis' policy, by the name that the user gave it."""

    name: str
    scorers: tuple[Scorer, ...]

    def judge(self, view: NodeView, choice: Choice) -> tuple[tuple[float, ...], Score]:
        """What to compare choices by (the greatest is the best, equal means a tie), and why.

        The score is that of the first scorer, the one that decides; `then` has the others.
        """
        scores = [one.score(view, choice) for one in self.scorers]
        rank = tuple([round(score.total, _DIGITS) for score in scores])
        first, *others = scores
        return rank, Score(first.terms, tuple(others)) if others else first

    def rank(self, view: NodeView, choice: Choice) -> tuple[float, ...]:
        """What to compare choices by: the greatest is the best; equal means a tie."""
        return self.judge(view, choice)[0]

    def score(self, view: NodeView, choice: Choice) -> Score:
        """Why, for an explanation: the score of each scorer, the first one's first."""
        return self.judge(view, choice)[1]
