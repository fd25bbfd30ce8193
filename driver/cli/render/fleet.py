"""A real cluster as a picture in a terminal: a row a node, a cell a card, with a legend.

Colour never carries meaning alone: every state has a sign of its own.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from rich.text import Text

from driver.cli.fleet.nodes import by_group, fragmentation, largest
from driver.cli.fleet.report import Card, Matrix, NodeCards
from driver.cli.render.matrix import MIB_PER_GIB, Cell, Signs, count, strip
from driver.cli.render.table import table

# With more nodes than this, equal rows are one.
_FOLD_ABOVE = 40
_COLUMNS = ("FREE", "LARGEST", "FRAG", "PENDING")
_WIDE = ("MODEL", "MEMORY IN USE")
_CAPACITY = (
    "CAPACITY",
    "PHYSICAL",
    "ALLOCATABLE",
    "COMMITTED",
    "LARGEST",
    "MEMORY IN USE",
    "FREE",
    "ON FREE CARDS",
)


class _Line(msgspec.Struct, frozen=True):
    """One row before widths are known."""

    name: str
    cells: Text
    columns: tuple[str, ...]
    note: str = ""


def as_text(found: Matrix, signs: Signs, *, wide: bool = False) -> list[Text]:
    """The whole picture; wide rows also have model and memory, and none is folded."""
    if not found.nodes:
        return [Text(f"no node has cards of {found.driver}")]
    lines = list(_lines(found, signs, wide=wide))
    head = _Line("NODE", Text("GPU"), (*_COLUMNS, *(_WIDE if wide else ())))
    rows = _aligned([head, *lines])
    rows[0].stylize("bold")
    cards = [card for node in found.nodes for card in node.cards]
    rows += _capacity(found) if wide else ()
    return [*rows, *_below(found), *(Text(text, style="dim") for text in _legend(cards, signs))]


def _lines(found: Matrix, signs: Signs, *, wide: bool) -> Iterator[_Line]:
    folds = not wide and len(found.nodes) > _FOLD_ABOVE
    for group, nodes in by_group(found.nodes):
        if found.group_by:
            yield _heading(found.group_by, group, nodes, wide=wide)
        rows = [_row(node, signs, wide=wide) for node in nodes]
        yield from _folded(rows) if folds else rows
    yield _sum("total", [card for node in found.nodes for card in node.cards], found, wide=wide)


def _heading(label: str, group: str, nodes: Sequence[NodeCards], *, wide: bool) -> _Line:
    cards = [card for node in nodes for card in node.cards]
    nodes_said = "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes"
    name = f"{label}={group}" if group else f"{label} is not set"
    columns = _numbers(cards, sum(node.pending for node in nodes))
    return _Line(name, Text(nodes_said), (*columns, *(_more(cards) if wide else ())))


def _row(node: NodeCards, signs: Signs, *, wide: bool) -> _Line:
    cells = strip((cell(card, signs) for card in node.cards), signs)
    columns = _numbers(node.cards, node.pending)
    return _Line(node.node, cells, (*columns, *(_more(node.cards) if wide else ())), note=node.note)


def _sum(name: str, cards: Sequence[Card], found: Matrix, *, wide: bool) -> _Line:
    total = found.total
    columns = (
        f"{total.free}/{total.cards}",
        str(total.largest_free),
        f"{total.fragmentation:.0f}%",
        str(total.nominated),
    )
    nodes = "1 node" if total.nodes == 1 else f"{total.nodes} nodes"
    return _Line(name, Text(nodes), (*columns, *(_more(cards) if wide else ())))


def _folded(rows: Sequence[_Line]) -> Iterator[_Line]:
    """Rows that differ in the name only are one, where the first of them is."""
    alike: dict[tuple[object, ...], list[_Line]] = {}
    for row in rows:
        alike.setdefault((row.cells.plain, row.columns, row.note), []).append(row)
    for same in alike.values():
        first = same[0]
        if len(same) == 1:
            yield first
        else:
            said = "; ".join(filter(None, (f"{len(same)} nodes like this", first.note)))
            yield msgspec.structs.replace(first, note=said)


def _numbers(cards: Sequence[Card], pending: int) -> tuple[str, ...]:
    return (
        f"{sum(card.open for card in cards)}/{len(cards)}",
        str(largest(cards)),
        f"{fragmentation(cards):.0f}%",
        str(pending),
    )


def _more(cards: Sequence[Card]) -> tuple[str, ...]:
    models = ", ".join(dict.fromkeys(card.model or "-" for card in cards)) or "-"
    used = sum(card.memory_used_mib for card in cards) / MIB_PER_GIB
    memory = sum(card.memory_mib for card in cards) / MIB_PER_GIB
    return models, f"{used:.1f} of {memory:.1f} GiB"


def cell(card: Card, signs: Signs) -> Cell:
    """How one card is drawn."""
    full = card.use == "shared" and card.shares == 1 and card.memory_used_mib == card.memory_mib
    if card.use == "whole" or full:
        first, second, colour = signs.whole, signs.whole, "red"
    elif card.use == "shared":
        first, second, colour = signs.shared, count(card.shares), "yellow"
    elif card.use == "mig":
        first, second, colour = signs.mig, count(len(card.mig_in_use)), "yellow"
    else:
        first, second, colour = signs.free, signs.free, "green"
    if card.taints:
        second, colour = signs.closed, "magenta"
    return Cell(first + second, colour, group=card.nvlink_group, numa=card.numa_node)


def _aligned(lines: Sequence[_Line]) -> list[Text]:
    name = max(len(line.name) for line in lines)
    cells = max(line.cells.cell_len for line in lines)
    widths = [max(len(line.columns[at]) for line in lines) for at in range(len(lines[0].columns))]
    found = []
    for line in lines:
        row = Text(f"{line.name:<{name}}  ")
        row.append_text(line.cells)
        row.append(" " * (cells - line.cells.cell_len))
        for text, width in zip(line.columns, widths, strict=True):
            row.append(f"  {text:<{width}}")
        row.append(f"  {line.note}" if line.note else "")
        row.rstrip()
        found.append(row)
    return found


def _capacity(found: Matrix) -> Iterator[Text]:
    """What there is, can be given and is given, by model."""
    rows = [
        (
            one.model or "-",
            str(one.physical),
            str(one.allocatable),
            str(one.committed),
            str(one.largest_free),
            f"{one.memory_used_mib / MIB_PER_GIB:.1f} of {one.memory_mib / MIB_PER_GIB:.1f} GiB",
            f"{one.memory_free_mib / MIB_PER_GIB:.1f} GiB",
            f"{one.memory_whole_mib / MIB_PER_GIB:.1f} GiB",
        )
        for one in found.total.capacity
    ]
    yield Text()
    yield from table(_CAPACITY, rows, right=range(1, len(_CAPACITY)))
    yield Text()


def _below(found: Matrix) -> Iterator[Text]:
    total = found.total
    waits = total.gated + total.nominated + total.waiting
    who = "1 pod waits" if waits == 1 else f"{waits} pods wait"
    yield Text(
        f"{total.cards} cards on {total.nodes} nodes: {total.free} free, {total.in_use} in use, "
        f"{total.tainted} closed; {who} ({total.gated} for a decision, "
        f"{total.nominated} nominated, {total.waiting} without a node)"
    )


def _legend(cards: Sequence[Card], signs: Signs) -> Iterator[str]:
    """Every sign; those for what this cluster does not have are left out."""
    said = [
        f"{signs.free * 2} free",
        f"{signs.shared}2 shared by 2 claims",
        f"{signs.whole * 2} one claim has all of it",
    ]
    if any(card.use == "mig" for card in cards):
        said.append(f"{signs.mig}2 divided (MIG), 2 instances in use")
    if any(card.taints for card in cards):
        said.append(f"{signs.closed} tainted: nothing new goes there")
    yield "   ".join(said)
    borders = [f"{signs.gap} another NVLink group", f"{signs.numa} another NUMA node"]
    drawn = "   ".join(_drawn(cards, borders))
    if drawn:
        yield drawn
    yield (
        "FREE cards with nothing in use   LARGEST free cards of one NVLink group (without groups: "
        "of the node)   FRAG part of the free memory that is on cards in use   PENDING pods "
        "nominated for the node, not scheduled yet"
    )


def _drawn(cards: Iterable[Card], borders: Sequence[str]) -> Iterator[str]:
    found = list(cards)
    if len({card.nvlink_group for card in found}) > 1:
        yield borders[0]
    if len({card.numa_node for card in found}) > 1:
        yield borders[1]
