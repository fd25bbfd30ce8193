"""Columns of text without a frame, as wide as needed; no line ends in spaces."""

from collections.abc import Collection, Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

_GAP = "  "


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[int] = ()
) -> Iterator[Text]:
    """The lines of a table, the bold head first; the columns in `right` end at the right."""
    lines = [head, *rows]
    widths = [max(cell_len(line[column]) for line in lines) for column in range(len(head))]
    for number, line in enumerate(lines):
        cells = [
            _padded(cell, width, right=column in right)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        yield Text(_GAP.join(cells).rstrip(), style="" if number else "bold")


def _padded(cell: str, width: int, *, right: bool) -> str:
    gap = " " * (width - cell_len(cell))
    return gap + cell if right else cell + gap
