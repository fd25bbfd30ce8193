"""Changing a YAML text in the few places where its data changes: all else stays as written.

What is left: order, quoting, blank lines, and comments, except those on lines that go. A change
that cannot be made in place raises `CannotEditError`; the caller then writes the object anew.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from driver.model.errors import QuadrantError

_WIDE = 10**6
_DUMPER: type[yaml.SafeDumper] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class CannotEditError(QuadrantError):
    """The text has a shape in which this change has no place of its own."""


class Edit(NamedTuple):
    """A piece of the text, by positions, and what stands there instead."""

    start: int
    end: int
    text: str


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The text with all edits; raises `CannotEditError` when two are about the same piece."""
    found = sorted(edits)
    for one, other in pairwise(found):
        if other.start < one.end:
            raise CannotEditError("two changes fall on the same lines")
    for edit in reversed(found):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def dump(value: Any, *, indent: int = 0) -> str:
    """Block style, each line indented; ends with a line end."""
    text = yaml.dump(value, Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=_WIDE)
    return "".join(" " * indent + line for line in text.splitlines(keepends=True))


class Differ:
    """The edits that turn one document of a text into another."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0]
        for line in text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def edits(self, node: Node, old: Any, new: Any) -> Iterator[Edit]:
        """What changes at this node of the text; raises `CannotEditError`."""
        if old == new:
            return
        if _is_block(node) and isinstance(node, MappingNode) and isinstance(new, dict) and new:
            yield from self._mapping(node, old, new)
        elif _is_block(node) and isinstance(node, SequenceNode) and isinstance(new, list):
            yield from self._sequence(node, old, new)
        elif _is_block(node):
            raise CannotEditError("a block becomes something else")
        else:
            yield self._inline(node, new)

    def after(self, node: Node) -> int:
        """Where the line after the last line of a node begins."""
        return self._starts[min(_last_line(node) + 1, len(self._starts) - 1)]

    def _mapping(
        self, node: MappingNode, old: dict[str, Any], new: dict[str, Any]
    ) -> Iterator[Edit]:
        names = [_name(key) for key, _ in node.value]
        for name, (key, value) in zip(names, node.value, strict=True):
            if name in new:
                yield from self.edits(value, old.get(name), new[name])
            elif old.get(name) is not None:
                yield self._without(key, value)
        added = {name: value for name, value in new.items() if name not in names}
        if added:
            place = self.after(node)
            yield Edit(place, place, dump(added, indent=node.start_mark.column))

    def _without(self, key: Node, value: Node) -> Edit:
        start = self._starts[key.start_mark.line]
        if self._text[start : key.start_mark.index].strip():
            raise CannotEditError(f"{key.value} shares its line with what stays")
        return Edit(start, max(self.after(value), self.after(key)), "")

    def _sequence(self, node: SequenceNode, old: list[Any], new: list[Any]) -> Iterator[Edit]:
        if len(new) < len(old):
            raise CannotEditError("an item of a list goes")
        for item, before, after in zip(node.value, old, new, strict=False):
            yield from self.edits(item, before, after)
        added = new[len(old) :]
        if added:
            place = self.after(node)
            yield Edit(place, place, dump(added, indent=node.start_mark.column))

    def _inline(self, node: Node, new: Any) -> Edit:
        text = yaml.dump(
            new,
            Dumper=_DUMPER,
            sort_keys=False,
            allow_unicode=True,
            width=_WIDE,
            default_flow_style=True,
        )
        start, end = node.start_mark.index, node.end_mark.index
        written = text.removesuffix("...\n").rstrip("\n")
        return Edit(start, end, f" {written}" if start == end else written)


def _name(key: Node) -> Any:
    """A member's name as data: `1` is a number there."""
    if not isinstance(key, ScalarNode):
        raise CannotEditError("a member's name is no plain word")
    return data(key)


def _is_block(node: Node) -> bool:
    return isinstance(node, MappingNode | SequenceNode) and not node.flow_style


def _last_line(node: Node) -> int:
    """The number of the last line that belongs to a node; comments behind it do not."""
    if _is_block(node):
        parts = [part for pair in node.value for part in _parts(pair)]
        return max(map(_last_line, parts))
    end = node.end_mark
    ends_before = isinstance(node, ScalarNode) and end.column == 0
    return end.line - 1 if ends_before and end.line > node.start_mark.line else end.line


def _parts(item: Any) -> tuple[Node, ...]:
    """Key and value of a mapping's member; a list's item by itself."""
    return item if isinstance(item, tuple) else (item,)


def nodes(text: str) -> Iterator[Node]:
    """Each document of a text that is not empty."""
    for node in yaml.compose_all(text, Loader=yaml.SafeLoader):
        if node.tag != "tag:yaml.org,2002:null":
            yield node


def data(node: Node) -> Any:
    """What a node is as data."""
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_document(node)
    finally:
        loader.dispose()


def shares_parts(text: str) -> bool:
    """Whether the text has anchors: a change in one place would be one in several."""
    return any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text))
