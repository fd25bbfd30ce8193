"""Reads a recorded cluster: nodes and tasks as comma-separated values with a row of names.

The format is that of the "openb" traces (hkust-adsl/kubernetes-scheduler-simulator). Columns that
are not mentioned here are not looked at.
"""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from driver.model.errors import QuadrantError
from driver.simulator.trace.tasks import WHOLE_CARD, Ask, Machine, Task

_NODE = ("cpu_milli", "memory_mib", "gpu", "model")
_TASK = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec")
_TIMES = ("creation_time", "deletion_time")

_Row = Mapping[str, str | None]
_Read = TypeVar("_Read")


class TraceError(QuadrantError):
    """A trace that cannot be read; the text names file and line."""


def machines(path: str) -> list[Machine]:
    """The nodes, in the order of the file."""
    return _rows(path, _NODE, _machine)


def tasks(path: str, *, timed: bool = False) -> list[Task]:
    """The tasks, in the order of the file; `timed` ones must say when they came and left."""
    return _rows(path, (*_TASK, *(_TIMES if timed else ())), _timed if timed else _untimed)


def _rows(path: str, columns: Sequence[str], read: Callable[[_Row], _Read]) -> list[_Read]:
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            found = list(_read_rows(path, csv.DictReader(file), columns, read))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TraceError(f"trace {path} cannot be read: {error}") from error
    if not found:
        raise TraceError(f"trace {path} is empty: expected lines after the one with the names")
    return found


def _read_rows(
    path: str, reader: "csv.DictReader[str]", columns: Sequence[str], read: Callable[[_Row], _Read]
) -> Iterator[_Read]:
    missing = [name for name in columns if name not in (reader.fieldnames or ())]
    if missing:
        raise TraceError(
            f"trace {path} has no column {missing[0]}: expected a first line with the names "
            f"{', '.join(columns)}, separated by commas"
        )
    for row in reader:
        try:
            _check_length(row)
            yield read(row)
        except ValueError as error:
            raise TraceError(f"trace {path}, line {reader.line_num}: {error}") from None


def _check_length(row: Mapping[str | Any, Any]) -> None:
    # What stands beyond the last name has None for a name.
    if None in row:
        raise ValueError(f"{len(row[None])} more values than the first line has names")


def _machine(row: _Row) -> Machine:
    cpu, memory, cards = (_number(row, name) for name in ("cpu_milli", "memory_mib", "gpu"))
    return Machine(cpu=cpu, memory=memory, cards=cards, model=_text(row, "model"))


def _untimed(row: _Row) -> Task:
    cpu, memory, count = (_number(row, name) for name in ("cpu_milli", "memory_mib", "num_gpu"))
    milli = _number(row, "gpu_milli") if count else 0
    if count and not 0 < milli <= WHOLE_CARD:
        raise ValueError(f"gpu_milli is {milli}: expected 1 to {WHOLE_CARD}, a whole card")
    models = frozenset(filter(None, map(str.strip, _text(row, "gpu_spec").split("|"))))
    if not count:
        models = frozenset()
    return Task(Ask(cpu, memory, count, milli, models))


def _timed(row: _Row) -> Task:
    came, left = (_number(row, name) for name in _TIMES)
    if left < came:
        raise ValueError(f"deletion_time {left} is before creation_time {came}")
    return Task(_untimed(row).ask, left - came)


def _text(row: _Row, name: str) -> str:
    """What stands in a column; a short row has None there."""
    text = row[name]
    if text is None:
        raise ValueError(f"{name} is missing: the line has too few values")
    return text.strip()


def _number(row: _Row, name: str) -> int:
    text = _text(row, name)
    if not text.isdecimal():
        raise ValueError(f"{name} is {text!r}: expected a whole number")
    return int(text)
