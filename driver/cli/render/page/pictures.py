"""The cards of a cluster as a grid: a row for each node, a cell for each card.

A card's state is in its sign, its border and its words; colour only repeats it.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby

import msgspec

from driver.cli.render.page.markup import Markup, element, joined
from driver.cli.simulation.report import CardUse, Placement

FREE, WHOLE = "·", "■"
_MIB_PER_GIB = 1024
CardKey = tuple[str, str]


class Look(msgspec.Struct, frozen=True):
    """How a card is drawn, and how it is told."""

    kind: str
    sign: str
    used: int
    words: str


def look(card: CardUse, pods: Sequence[str]) -> Look:
    """The sign and the words of one card; `pods` of this simulation are on it."""
    memory = card.memory_mib / _MIB_PER_GIB
    used = card.memory_used_mib / _MIB_PER_GIB
    who = f"\npods: {', '.join(pods)}" if pods else ""
    name = f"{card.node}, GPU {card.index}, {card.product or card.device}"
    full = 0 < card.memory_mib == card.memory_used_mib
    if card.exclusive or (full and card.shares == 1 and not card.parts):
        return Look("whole", WHOLE, 100, f"{name}: one claim has all of its {memory:.1f} GiB{who}")
    if card.shares:
        what = "part" if card.parts else "claim"
        claims = f"1 {what} has" if card.shares == 1 else f"{card.shares} {what}s have"
        percent = round(100 * card.memory_used_mib / card.memory_mib) if card.memory_mib else 0
        words = f"{name}: {claims} {used:.1f} of {memory:.1f} GiB{who}"
        return Look("shared", str(card.shares), percent, words)
    return Look("free", FREE, 0, f"{name}: free, {memory:.1f} GiB")


def picture(
    title: str, place: str, cards: Sequence[CardUse], pods: Mapping[CardKey, Sequence[str]]
) -> Markup:
    """One figure; `place` tells its cards from those of other figures."""
    rows = []
    first = True
    for node, part in groupby(cards, key=lambda card: card.node):
        cells = []
        group = None
        for card in part:
            apart = group is not None and card.nvlink_group != group
            group = card.nvlink_group
            found = _cell(card, place, pods.get((card.node, card.device), ()), reached=first)
            cells.append(element("td", found, role="gridcell", class_="gap" if apart else None))
            first = False
        rows.append(element("tr", element("th", node, scope="row"), *cells, role="row"))
    grid = element("table", *rows, class_="cards", role="grid", aria_label=f"Cards, {title}")
    return element("figure", element("figcaption", title), element("div", grid, class_="scroll"))


def _cell(card: CardUse, place: str, pods: Sequence[str], *, reached: bool) -> Markup:
    drawn = look(card, pods)
    return element(
        "div",
        drawn.sign,
        class_=f"card {drawn.kind}",
        style=f"--used:{drawn.used}%",
        tabindex=0 if reached else -1,
        role="img",
        aria_label=drawn.words,
        id=card_id(place, card.node, card.device),
    )


def card_id(place: str, node: str, device: str) -> str:
    """What names a card of one figure in links from pods."""
    return f"{place}/{node}/{device}"


def pods_by_card(placements: Sequence[Placement]) -> dict[CardKey, list[str]]:
    """Which pods are on each card."""
    found: dict[CardKey, list[str]] = {}
    for placement in placements:
        for device in placement.devices:
            found.setdefault((placement.node, device.device), []).append(placement.pod)
    return found


def legend(*, grouped: bool) -> Markup:
    """What the signs mean."""
    parts = [
        ("free", FREE, 0, "nothing of it is in use"),
        ("shared", "2", 50, "shared by 2 claims; filled as far as its memory is in use"),
        ("whole", WHOLE, 100, "one claim has all of it"),
    ]
    items = [
        element(
            "span",
            element("span", sign, class_=f"card {kind}", style=f"--used:{used}%"),
            words,
        )
        for kind, sign, used, words in parts
    ]
    if grouped:
        items.append(element("span", "a gap in a row: another NVLink group"))
    return element("div", joined(*items), class_="legend")
