"""The picture of the README: the same pods on the same machines, placed in two ways."""

import string
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import msgspec

from driver.cli.simulation.report import CardUse
from hack.pictures import svg
from hack.pictures.played import Outcome

_WIDTH, _HEIGHT = 960, 684
_CARD, _GAP = 30, 6
_PITCH = _CARD + _GAP
_TOP = 138
_LEFT = (36, 516)
_LABEL = 62
_CHART = (36, 568, 888, 76)


class Side(msgspec.Struct, frozen=True):
    """One half of the picture: who placed the pods, in which way, and what came of it."""

    title: str
    way: str
    outcome: Outcome
    class_: str


def figure(sides: Sequence[Side], *, seed: int) -> str:
    """The whole picture."""
    one = sides[0].outcome
    machines = len({card.node for card in one.cards})
    title = f"The same {one.pods} pods, placed twice"
    words = (
        f"{machines} machines of {len(one.cards) // machines} H100. {len(one.empty)} pods came, "
        f"most have left again, in the same order on both sides (drawn with seed {seed})."
    )
    described = "; ".join(
        f"{side.title} ({side.way}): room for {side.outcome.room[8]} more jobs of 8 cards"
        for side in sides
    )
    parts = [
        svg.text(_LEFT[0], 44, title, "title"),
        svg.text(_LEFT[0], 68, words, "soft"),
        *(part for side, x in zip(sides, _LEFT, strict=True) for part in _side(side, x)),
        *_legend(),
        *_chart(sides),
    ]
    return svg.document((_WIDTH, _HEIGHT), parts, title=title, described=described)


def _side(side: Side, x: int) -> Iterator[str]:
    yield svg.text(x, 104, side.title, "head")
    yield svg.text(x, 123, side.way, "soft")
    letters = _letters(side.outcome)
    rows = groupby(side.outcome.cards, key=lambda card: card.node)
    for number, (node, cards) in enumerate(rows):
        yield from _machine(letters, node, tuple(cards), (x, _TOP + number * _PITCH))
    below = _TOP + 8 * _PITCH + 36
    for at, (size, left) in enumerate(sorted(side.outcome.room.items(), reverse=True)):
        start = x + _LABEL + at * 160
        yield svg.text(start, below, str(left), f"number {'soft' if at else side.class_}")
        yield svg.text(start + 30, below - 14, "more jobs of", "soft")
        yield svg.text(start + 30, below + 3, f"{size} linked GPUs fit", "soft")


def _letters(outcome: Outcome) -> dict[tuple[str, str], str]:
    """A letter for each pod with several cards, on all of them; the same on both sides."""
    counted = Counter(outcome.holders.values())
    several = sorted(number for number, cards in counted.items() if cards > 1)
    letter = dict(zip(several, string.ascii_uppercase, strict=False))
    return {card: letter.get(number, "") for card, number in outcome.holders.items()}


def _machine(
    letters: Mapping[tuple[str, str], str],
    node: str,
    cards: Sequence[CardUse],
    at: tuple[int, int],
) -> Iterator[str]:
    x, y = at[0] + _LABEL, at[1]
    yield svg.text(at[0], y + 20, node, "soft")
    for place, card in enumerate(cards):
        yield from _card(card, letters.get((node, card.device)), x + place * _PITCH, y)
    if not any(card.shares or card.exclusive for card in cards):
        wide = len(cards) * _PITCH - _GAP
        yield svg.box((x - 3, y - 3, wide + 6, _CARD + 6), "room", round_=5)


def _card(card: CardUse, letter: str | None, x: float, y: float) -> Iterator[str]:
    """`letter` is None where no pod has all of it."""
    middle, base = x + _CARD / 2, y + _CARD / 2 + 4.5
    if letter is not None:
        yield svg.box((x, y, _CARD, _CARD), "whole")
        if letter:
            yield svg.text(middle, base, letter, "letter")
    elif not card.shares:
        yield svg.box((x, y, _CARD, _CARD), "free")
    else:
        full = _CARD * card.memory_used_mib / card.memory_mib
        yield svg.box((x, y, _CARD, _CARD), "card")
        yield svg.box((x, y + _CARD - full, _CARD, full), "share")
        yield svg.text(middle, base, str(card.shares), "count")


def _legend() -> Iterator[str]:
    y = _TOP + 8 * _PITCH + 66
    x = _LEFT[0]
    for kind, sign, words, wide in (
        ("free", "", "free", 76),
        ("card", "3", "3 pods have parts of it", 198),
        ("whole", "", "one pod has all of it", 178),
        ("whole", "A", "the cards of a pod that has several", 270),
        ("room", "", "a free machine", 0),
    ):
        yield svg.box((x, y, 18, 18), kind)
        if kind == "card":
            yield svg.box((x, y + 8, 18, 10), "share")
        if sign:
            yield svg.text(x + 9, y + 13.5, sign, "letter" if kind == "whole" else "count")
        yield svg.text(x + 26, y + 14, words, "soft")
        x += wide


def _chart(sides: Sequence[Side]) -> Iterator[str]:
    left, top, wide, high = _CHART
    most = max(len({card.node for card in side.outcome.cards}) for side in sides)
    title = "Machines that are wholly free, while pods come and go"
    yield svg.text(left, top - 16, title, "head")
    for value in range(0, most + 1, most // 2):
        y = top + high - high * value / most
        yield svg.path(((left + 20, y), (left + wide, y)), "axis" if not value else "grid")
        yield svg.text(left + 12, y + 4, str(value), "soft end")
    step = (wide - 20) / len(sides[0].outcome.empty)
    for side in sides:
        # Before the first pod, all are free.
        heights = [top + high - high * value / most for value in (most, *side.outcome.empty)]
        points = [
            (left + 20 + (number + after) * step, y)
            for number, y in enumerate(heights)
            for after in (0, min(1, len(heights) - 1 - number))
        ]
        yield svg.path(points, f"line {side.class_}")
        # Where the lines are far from each other.
        place = 5 * len(heights) // 16
        start = left + 20 + place * step
        yield svg.text(start, heights[place] - 8, side.title, f"{side.class_} strong")
    yield svg.text(left + 20, top + high + 18, "before the first pod", "soft")
    last = f"after pod {len(sides[0].outcome.empty)}"
    yield svg.text(left + wide, top + high + 18, last, "soft end")
