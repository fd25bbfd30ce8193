"""What a figure must reach for the program to end well: `--fail-below METRIC=VALUE`.

It knows no metric; who calls names those of which more is better.
"""

import math
from collections.abc import Collection, Iterable, Mapping

import msgspec

from driver.model.errors import QuadrantError

# What was measured; None where it never came so far.
Figures = Mapping[str, float | None]


class BoundError(QuadrantError):
    """A bound that cannot be read, or that a metric is below of."""


class Bound(msgspec.Struct, frozen=True):
    """What a metric must reach."""

    metric: str
    least: float


def bound(text: str, metrics: Collection[str]) -> Bound:
    """Read METRIC=VALUE, for one of these metrics; raises `BoundError`."""
    metric, _, value = text.partition("=")
    try:
        least = float(value)
    except ValueError:
        least = math.nan
    if metric not in metrics or math.isnan(least):
        raise BoundError(
            f"bound {text!r} cannot be read: expected METRIC=VALUE, such as "
            f"{next(iter(metrics))}=95, with one of {', '.join(metrics)}"
        )
    return Bound(metric, least)


def check(bounds: Iterable[Bound], found: Iterable[tuple[str, Figures]]) -> None:
    """Raise `BoundError` that names each policy and metric below its bound."""
    measured = list(found)
    below = [
        _told(one, policy, figures[one.metric])
        for one in bounds
        for policy, figures in measured
        if _below(one, figures[one.metric])
    ]
    if below:
        raise BoundError("; ".join(below))


def _below(one: Bound, figure: float | None) -> bool:
    return figure is None or figure < one.least


def _told(one: Bound, policy: str, figure: float | None) -> str:
    if figure is None:
        return f"{one.metric} was not measured with {policy}: tasks never came so far"
    return f"{one.metric} is {figure:g} with {policy}, below {one.least:g}"
