"""How measurements become figures, and how figures are shown."""

import math
from collections.abc import Sequence

import msgspec


class Spread(msgspec.Struct, frozen=True):
    """What many repetitions of one thing took, in milliseconds."""

    count: int
    p50: float
    p99: float
    longest: float


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a report: what was measured, and the same of its reference."""

    name: str
    unit: str
    value: float | Spread
    reference: float | Spread | None = None
    # Of the same repetitions, without the time in which the machine did something else.
    cpu: Spread | None = None

    @property
    def ratio(self) -> float | None:
        """The value over the reference, at p50 where there are many; None without a reference."""
        if self.reference is None or not middle(self.reference):
            return None
        return middle(self.value) / middle(self.reference)


class Section(msgspec.Struct, frozen=True):
    """What one subcommand found out; `reference` says what stands beside the values."""

    title: str
    reference: str
    figures: tuple[Figure, ...]


def spread(seconds: Sequence[float]) -> Spread:
    """The spread of these durations; raises `ValueError` when there are none."""
    if not seconds:
        raise ValueError("nothing was measured: a spread needs at least one duration")
    ordered = sorted(seconds)
    return Spread(
        count=len(ordered),
        p50=1000 * quantile(ordered, 0.5),
        p99=1000 * quantile(ordered, 0.99),
        longest=1000 * ordered[-1],
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest of these sorted values that at least this share of them does not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def middle(value: float | Spread) -> float:
    """The value itself, or its median."""
    return value.p50 if isinstance(value, Spread) else value


def table(section: Section) -> str:
    """The section for a terminal; columns that say nothing are left out."""
    rows = [("", "value", "CPU", "reference", "ratio"), *map(_row, section.figures)]
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in columns]
    about = [f"reference: {section.reference}"]
    if any(isinstance(figure.value, Spread) for figure in section.figures):
        about.append("two numbers are p50 / p99")
    lines = [
        "  ".join(
            cell.rjust(width) if index else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in zip(*columns, strict=True)
    ]
    return "\n".join([section.title, f"({'; '.join(about)})", *lines])


def document(sections: Sequence[Section], machine: dict[str, object]) -> bytes:
    """All sections as JSON, with the ratios."""
    told = [
        {
            "title": section.title,
            "reference": section.reference,
            "figures": [
                {**msgspec.structs.asdict(figure), "ratio": figure.ratio}
                for figure in section.figures
            ],
        }
        for section in sections
    ]
    return msgspec.json.format(msgspec.json.encode({"machine": machine, "sections": told}))


def _row(figure: Figure) -> tuple[str, str, str, str, str]:
    return (
        figure.name,
        _text(figure.value, figure.unit),
        "" if figure.cpu is None else _text(figure.cpu, "ms"),
        "" if figure.reference is None else _text(figure.reference, figure.unit),
        "" if figure.ratio is None else f"{figure.ratio:.2f}",
    )


def _text(value: float | Spread, unit: str) -> str:
    if isinstance(value, Spread):
        return f"{value.p50:.2f} / {value.p99:.2f} {unit}"
    return f"{value:.1f} {unit}"
