"""How a choice of devices is told in one line: to Events, to the log and on the command line."""

from collections.abc import Iterable

from driver.model.allocation import Explanation, RunnerUp, Score
from driver.model.ids import DeviceId

# Terms and reasons beyond these would not fit into one line.
_MOST = 3


def told(devices: Iterable[DeviceId], explanation: Explanation) -> str:
    """What was chosen, what it scored, what came next, and what was out of the question."""
    parts = [f"{_names(devices)} by {explanation.policy}"]
    if explanation.score.terms:
        parts[0] += f", score {_score(explanation.score)}"
    if explanation.runners_up:
        parts.append(_next(explanation.runners_up[0], explanation.score))
    parts += [
        f"{item.count} device{'s' if item.count > 1 else ''} no candidate: {item.reason}"
        for item in explanation.rejections[:_MOST]
    ]
    return "; ".join(parts)


def _names(devices: Iterable[DeviceId]) -> str:
    return ", ".join(dict.fromkeys(f"{item.pool}/{item.device}" for item in devices))


def _score(score: Score) -> str:
    terms = " + ".join(f"{term.name} {term.points:.2f}" for term in score.terms[:_MOST])
    return f"{score.total:.2f} ({terms})"


def _next(runner_up: RunnerUp, best: Score) -> str:
    behind = best.total - runner_up.score.total
    far = f"{behind:.2f} behind" if behind else "equal, later in order"
    return f"next {_names(runner_up.devices)}, {far}"
