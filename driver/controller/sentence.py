"""How a choice of devices is told in one line: to Events, to the log and on the command line."""

from collections.abc import Iterable

from driver.controller.planner import Plan
from driver.model.allocation import Explanation, Score
from driver.model.ids import DeviceId

# Terms and reasons beyond these would not fit into one line.
_MOST = 3
# Where not even a node on which nothing is in use would do.
NOTHING_HELPS = (
    "no node that was looked at could serve it even if nothing were in use: ask for less, for "
    "other devices, or add a node that has them"
)


def told(devices: Iterable[DeviceId], explanation: Explanation) -> str:
    """What was chosen, what it scored, what came next, and what was out of the question."""
    parts = [f"{_names(devices)} by {explanation.policy}"]
    if explanation.score.terms:
        parts[0] += f", score {_score(explanation.score)}"
    if explanation.runners_up:
        parts.append(_next(explanation))
    parts += [
        f"{item.count} device{'s' if item.count > 1 else ''} no candidate: {item.reason}"
        for item in explanation.rejections[:_MOST]
    ]
    if explanation.stopped_after:
        parts.append(bound_told(explanation.stopped_after))
    return "; ".join(parts)


def bound_told(steps: int) -> str:
    """That not every choice was looked at."""
    return f"the search stopped at its bound of {steps} steps: a better choice may exist"


def node_told(plan: Plan) -> str:
    """Which node was nominated and why, and how many were out of the question."""
    policy = plan.policy.value if plan.policy is not None else ""
    parts = [f"node {plan.node} by {policy}"]
    if plan.score.terms:
        parts[0] += f", score {_score(plan.score)}"
    if plan.runners_up:
        second = plan.runners_up[0]
        parts.append(f"next {second.node}, {_behind(second.score, plan.score, policy)}")
    parts += [
        f"{item.count} node{'s' if item.count > 1 else ''} out: {item.reason}"
        for item in plan.rejections[:_MOST]
    ]
    return "; ".join(parts)


def nowhere_told(plan: Plan) -> str:
    """Why no node was nominated, by reason, and what would make one fit."""
    parts = [
        f"{item.count} node{'s' if item.count > 1 else ''}: {item.reason} (such as {item.example})"
        for item in plan.rejections[:_MOST]
    ]
    remedy = next((item.remedy for item in plan.rejections if item.remedy), NOTHING_HELPS)
    parts += [f"what would help: {remedy}"] if parts else []
    return (
        f"{plan.why}, so that it is left to the scheduler: {'; '.join(parts) or 'no node is known'}"
    )


def _names(devices: Iterable[DeviceId]) -> str:
    return ", ".join(dict.fromkeys(f"{item.pool}/{item.device}" for item in devices))


def _score(score: Score) -> str:
    """The total and what it is made of; terms without points say nothing."""
    terms = [term for term in score.terms if term.points][:_MOST]
    said = ", ".join(f"{term.name} {_points(term.points)}" for term in terms)
    return f"{_points(score.total)} ({said})" if said else _points(score.total)


def _next(explanation: Explanation) -> str:
    runner_up = explanation.runners_up[0]
    behind = _behind(runner_up.score, explanation.score, explanation.policy)
    return f"next {_names(runner_up.devices)}, {behind}"


def _behind(second: Score, best: Score, policy: str) -> str:
    """How much worse: by the first of the policies that tells the two apart."""
    names = policy.split(",")
    pairs = zip((best, *best.then), (second, *second.then), strict=False)
    for place, (one, other) in enumerate(pairs):
        behind = round(one.total - other.total, 9)
        if behind:
            equal = f"equal by {', '.join(names[:place])}, " if place else ""
            by = f" by {names[place]}" if place else ""
            return f"{equal}{_points(behind)} behind{by}"
    return "equal, later in order"


def _points(points: float) -> str:
    """Four decimals; where these say nothing, the nine by which scores are told apart."""
    told = f"{points:.4f}"
    if not float(told):
        told = f"{round(points, 9) + 0.0:.9f}"
    return told.rstrip("0").rstrip(".")
