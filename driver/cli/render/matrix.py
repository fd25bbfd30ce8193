"""The picture of nodes and GPUs: one row a node, one cell a card, in the order of the index.

Colour never carries meaning alone: every state has a sign of its own, and the legend is always
there.
"""

from collections.abc import Iterable, Sequence

import msgspec
from rich.text import Text

from driver.cli.simulation.report import CardUse

MIB_PER_GIB = 1024


class Signs(msgspec.Struct, frozen=True):
    """What a card is drawn with; a shared one shows the number of its shares.

    `mig` stands before the number of instances in use, `closed` is the second half of a card that
    nothing new may go to, and `numa` and `gap` stand where the NUMA node, or the NVLink group, is
    another one.
    """

    free: str
    whole: str
    shared: str
    gap: str
    mig: str
    closed: str
    numa: str


UNICODE = Signs(free="·", whole="█", shared="▒", gap="│", mig="▚", closed="x", numa="╎")
ASCII = Signs(free=".", whole="#", shared="+", gap="|", mig="%", closed="x", numa=":")
_MANY = 9


class Cell(msgspec.Struct, frozen=True):
    """One card in a row: two signs, their colour, and what it shares with its neighbours."""

    text: str
    colour: str
    group: object = None
    numa: object = None


def strip(cells: Iterable[Cell], signs: Signs) -> Text:
    """The cards of one node side by side, with a bar where the group or NUMA node changes."""
    row = Text()
    last: Cell | None = None
    for cell in cells:
        if last is not None:
            if cell.group != last.group:
                row.append(f" {signs.gap}")
            elif cell.numa != last.numa:
                row.append(f" {signs.numa}")
            row.append(" ")
        row.append(cell.text, cell.colour)
        last = cell
    return row


def count(number: int) -> str:
    """A number in one place."""
    return str(number) if number <= _MANY else "*"


def matrix(cards: Sequence[CardUse], signs: Signs) -> list[Text]:
    """All rows with head, legend and total; a bar stands where the NVLink group changes."""
    rows = _by_node(cards)
    if not rows:
        return [Text("no cards")]
    name_width = max(len("NODE"), *(len(node) for node in rows))
    cells = {node: _cells(part, signs) for node, part in rows.items()}
    cell_width = max(len("GPU"), *(row.cell_len for row in cells.values()))
    head = f"{'NODE':<{name_width}}  {'GPU':<{cell_width}}  FREE   MEMORY"
    lines = [Text(head, style="bold")]
    for node, part in rows.items():
        line = Text(f"{node:<{name_width}}  ")
        line.append_text(cells[node])
        line.append(" " * (cell_width - cells[node].cell_len))
        line.append(f"  {_free(part):<5}  {_memory(part)}")
        lines.append(line)
    total = f"{'total':<{name_width}}  {'':<{cell_width}}  {_free(cards):<5}  {_memory(cards)}"
    return [*lines, Text(total), Text(_legend(cards, signs), style="dim")]


def side_by_side(columns: Sequence[tuple[str, Sequence[CardUse]]], signs: Signs) -> list[Text]:
    """The same nodes in several states: a column for each, with its title, and the legend."""
    pictures = [(title, _by_node(cards)) for title, cards in columns]
    nodes = list(dict.fromkeys(node for _, rows in pictures for node in rows))
    if not nodes:
        return [Text("no cards")]
    name_width = max(len("NODE"), *(len(node) for node in nodes))
    lines = [Text(f"{name:<{name_width}}") for name in ("NODE", *nodes, "free")]
    for title, rows in pictures:
        cells = [Text(title), *(_cells(rows[node], signs) for node in nodes)]
        cells.append(Text(_free(card for part in rows.values() for card in part)))
        width = max(cell.cell_len for cell in cells)
        for line, cell in zip(lines, cells, strict=True):
            line.append("   ")
            line.append_text(cell)
            line.append(" " * (width - cell.cell_len))
    for line in lines:
        line.rstrip()
    lines[0].stylize("bold")
    shown = [card for _, cards in columns for card in cards]
    return [*lines, Text(_legend(shown, signs), style="dim")]


def _by_node(cards: Iterable[CardUse]) -> dict[str, list[CardUse]]:
    rows: dict[str, list[CardUse]] = {}
    for card in cards:
        rows.setdefault(card.node, []).append(card)
    return rows


def _cells(cards: Sequence[CardUse], signs: Signs) -> Text:
    return strip((Cell(*_cell(card, signs), group=card.nvlink_group) for card in cards), signs)


def _cell(card: CardUse, signs: Signs) -> tuple[str, str]:
    if card.parts:
        return signs.mig + count(card.parts), "yellow"
    if card.exclusive or (card.shares == 1 and card.memory_used_mib == card.memory_mib):
        return signs.whole * 2, "red"
    if card.shares:
        return signs.shared + count(card.shares), "yellow"
    return signs.free * 2, "green"


def _free(cards: Iterable[CardUse]) -> str:
    part = list(cards)
    free = sum(not (card.exclusive or card.shares) for card in part)
    return f"{free}/{len(part)}"


def _memory(cards: Iterable[CardUse]) -> str:
    part = list(cards)
    used = sum(card.memory_used_mib for card in part) / MIB_PER_GIB
    return f"{used:.1f} of {sum(card.memory_mib for card in part) / MIB_PER_GIB:.1f} GiB in use"


def _legend(cards: Sequence[CardUse], signs: Signs) -> str:
    said = (
        f"{signs.free * 2} free   {signs.shared}2 shared by 2 claims   "
        f"{signs.whole * 2} one claim has all of it"
    )
    if any(card.parts for card in cards):
        said += f"   {signs.mig}2 divided (MIG), 2 parts in use"
    return f"{said}   {signs.gap} another NVLink group" if _grouped(cards) else said


def _grouped(cards: Sequence[CardUse]) -> bool:
    """Whether a node has cards of more than one NVLink group."""
    return any(len({card.nvlink_group for card in row}) > 1 for row in _by_node(cards).values())
