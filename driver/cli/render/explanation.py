"""An account as blocks for people: chosen, runners-up, rejected, what would make it fit."""

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from driver.cli.explanation.report import Account, Axis, Option
from driver.controller.sentence import bound_told
from driver.policy.registry import NONE

_DIGITS = 6


def as_text(account: Account, console: Console) -> None:
    """Print the account."""
    console.print(Text(account.summary, style="bold"), soft_wrap=True)
    console.print(Text(account.basis), soft_wrap=True)
    for line in _lines(account):
        console.print(line, soft_wrap=True)


def _lines(account: Account) -> Iterator[Text]:
    for title, axis, things in (
        ("NODE", account.node, "node"),
        ("DEVICES", account.devices, "device"),
    ):
        if axis is not None:
            yield Text()
            yield Text(f"{title} by {_policy(axis)}", style="bold")
            yield from map(Text, _axis(axis, things))
    yield from _block("WHAT WOULD MAKE IT FIT", [f"- {one}" for one in account.would_fit])
    said = [
        f"{_moment(one.time)}  {one.about}  {one.reason}: {one.note}" for one in account.recorded
    ]
    yield from _block("RECORDED", said)
    yield from _block("WARNINGS", list(account.warnings))


def _moment(time: str) -> str:
    # The API tells times in UTC, of events with microseconds.
    return f"{time[:19]}Z" if time else "now"


def _block(title: str, lines: list[str]) -> Iterator[Text]:
    if lines:
        yield Text()
        yield Text(title, style="bold")
        yield from (Text(f"  {line}") for line in lines)


def _policy(axis: Axis) -> str:
    weights = f", weights {axis.weights} ({axis.weights_from})" if axis.weights else ""
    return f"{axis.policy} ({axis.policy_from}){weights}"


def _axis(axis: Axis, things: str) -> Iterator[str]:
    if axis.chosen is not None:
        yield f"  chosen     {_option(axis.chosen)}"
    for place, one in enumerate(axis.runners_up):
        yield f"  {'' if place else 'runners-up':<10} {_option(one)}{_behind(one)}"
    for place, rejection in enumerate(axis.rejected):
        number = f"{rejection.count} {things}{'' if rejection.count == 1 else 's'}"
        example = f" (such as {rejection.example})" if rejection.example else ""
        yield f"  {'' if place else 'rejected':<10} {number}: {rejection.reason}{example}"
    if axis.policy == NONE:
        yield f"  {'note':<10} nothing is scored: the choice is left to the scheduler"
    if axis.stopped_after:
        yield f"  {'note':<10} {bound_told(axis.stopped_after)}"


def _option(option: Option) -> str:
    """The names, and the score as a sum of its terms; zeros say nothing."""
    said = []
    for score in option.scores:
        terms = " + ".join(
            f"{_number(term.points)} {term.name}" for term in score.terms if term.points
        )
        total = f"{score.policy} {_number(score.total)}"
        said.append(f"{total} = {terms.replace('+ -', '- ')}" if terms else total)
    return "  ".join([", ".join(option.names), "; then ".join(said)]).rstrip()


def _behind(option: Option) -> str:
    """By how much, in the first policy that tells the two apart."""
    if not option.scores:
        return ""
    for score, behind in zip(option.scores, option.behind, strict=False):
        if behind:
            side = "behind" if behind > 0 else "ahead, as things are now"
            return f"  ({_number(abs(behind))} {side} by {score.policy})"
    return "  (equal, later in order)"


def _number(points: float) -> str:
    return f"{points:.{_DIGITS}f}".rstrip("0").rstrip(".")
