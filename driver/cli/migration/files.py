"""Files rewritten object by object, and what there is to say about each."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from typing import Any

import msgspec
import yaml
from yaml.nodes import Node

from driver.cli.migration import edit
from driver.cli.migration.conversion import Converted
from driver.cli.migration.edit import CannotEditError, Differ, Edit
from driver.cli.simulation.documents import ManifestError

Raw = Mapping[str, Any]
Convert = Callable[[Raw], Converted]
_ANEW = "is written anew, comments in it are lost"


class Said(msgspec.Struct, frozen=True):
    """A sentence about one object; `refused` when it could not be rewritten."""

    about: str
    sentence: str
    refused: bool = False


class Rewritten(msgspec.Struct, frozen=True):
    """A file before and after."""

    name: str
    before: str
    after: str
    said: tuple[Said, ...]

    def diff(self) -> str:
        """A unified diff that `git apply` and `patch -p1` take; empty where nothing changes."""
        name = self.name.lstrip("/")
        lines = unified_diff(
            self.before.splitlines(keepends=True),
            self.after.splitlines(keepends=True),
            f"a/{name}",
            f"b/{name}",
        )
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            for line in lines
        )


def rewrite(name: str, text: str, convert: Convert) -> Rewritten:
    """Rewrite all objects of a file; raises `ManifestError` for what is no YAML."""
    try:
        found = list(edit.nodes(text))
        values = list(map(edit.data, found))
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise ManifestError(
            f"{name}: is no YAML: {reason}; of a chart, rewrite what `helm template` prints"
        ) from error
    for number, value in enumerate(values, 1):
        if not isinstance(value, dict):
            raise ManifestError(
                f"{name}, document {number}: expected an object with apiVersion and kind"
            )
    if _is_json(text):
        return _json(name, text, values[0], convert)
    return _yaml(name, text, [_plan(*pair, convert) for pair in zip(found, values, strict=True)])


def _is_json(text: str) -> bool:
    """YAML may begin with a brace, too."""
    try:
        return text.lstrip().startswith("{") and bool(json.loads(text))
    except ValueError:
        return False


def _json(name: str, text: str, value: Raw, convert: Convert) -> Rewritten:
    """JSON has no comments, so that it is written anew; its templates need a List."""
    results = [(one, convert(_without_nulls(one))) for one in _items(value)]
    said = tuple(sentence for one, result in results for sentence in _said(one, result))
    made = [
        part
        for one, result in results
        for part in ((result.template, result.raw) if result.template is not None else (one,))
    ]
    if len(made) == len(results):
        return Rewritten(name, text, text, said)
    whole = value if _is_list(value) else {"apiVersion": "v1", "kind": "List"}
    after = json.dumps({**whole, "items": made}, indent=2, ensure_ascii=False)
    return Rewritten(name, text, f"{after}\n", said)


class _Plan(msgspec.Struct, frozen=True):
    """One document: as it stands, its data before and after, and templates to go before it."""

    node: Node
    old: Raw
    new: Raw
    templates: tuple[Raw, ...]
    said: tuple[Said, ...]

    @property
    def changes(self) -> bool:
        return bool(self.templates)


def _plan(node: Node, old: Raw, convert: Convert) -> _Plan:
    results = [(one, convert(_without_nulls(one))) for one in _items(old)]
    items = [
        _with_nulls(one, result.raw) if result.template is not None else one
        for one, result in results
    ]
    return _Plan(
        node,
        old,
        {**old, "items": items} if _is_list(old) else items[0] if items else old,
        tuple(result.template for _, result in results if result.template is not None),
        tuple(sentence for one, result in results for sentence in _said(one, result)),
    )


def _yaml(name: str, text: str, plans: Sequence[_Plan]) -> Rewritten:
    said = tuple(sentence for plan in plans for sentence in plan.said)
    if not any(plan.changes for plan in plans):
        return Rewritten(name, text, text, said)
    # A last line without an end would run into what is added below it.
    padded = text if text.endswith("\n") else f"{text}\n"
    differ = Differ(padded)
    try:
        after = _in_place(padded, differ, plans)
    except (CannotEditError, yaml.YAMLError) as error:
        after = edit.edited(padded, _edits(differ, plans, in_place=False))
        lost = (Said(_about(plan.old), f"{_ANEW}: {error}") for plan in plans if plan.changes)
        said = (*said, *lost)
    return Rewritten(name, text, after, said)


def _in_place(text: str, differ: Differ, plans: Sequence[_Plan]) -> str:
    """The text with its changes; raises `CannotEditError` unless it then says what it should."""
    if edit.shares_parts(text):
        raise CannotEditError("the file has anchors")
    after = edit.edited(text, _edits(differ, plans, in_place=True))
    if _loaded(after) != _expected(plans):
        raise CannotEditError("its shape is unusual")
    return after


def _edits(differ: Differ, plans: Iterable[_Plan], *, in_place: bool) -> Iterator[Edit]:
    for plan in plans:
        if not plan.changes:
            continue
        start, end = plan.node.start_mark, differ.after(plan.node)
        templates = [edit.dump(template) for template in plan.templates]
        written = [] if in_place else [edit.dump(plan.new)]
        if start.column:
            # `--- {kind: …}`: nothing can go before it on its line.
            yield Edit(end, end, "".join(f"---\n{one}" for one in templates))
        else:
            yield Edit(start.index, start.index, "".join(f"{one}---\n" for one in templates))
        if in_place:
            yield from differ.edits(plan.node, plan.old, plan.new)
        else:
            yield Edit(start.index, end, "".join(written))


def _expected(plans: Iterable[_Plan]) -> list[Raw]:
    found: list[Raw] = []
    for plan in plans:
        own = [plan.new]
        found += [*own, *plan.templates] if plan.node.start_mark.column else [*plan.templates, *own]
    return found


def _loaded(text: str) -> list[Any]:
    return [value for value in yaml.safe_load_all(text) if value is not None]


def _said(one: Raw, result: Converted) -> Iterator[Said]:
    if result.refused:
        yield Said(_about(one), f"not rewritten: {result.refused}", refused=True)
    for note in result.notes:
        yield Said(_about(one), note)


def _about(one: Raw) -> str:
    metadata = one.get("metadata") or {}
    name = str(metadata.get("name") or metadata.get("generateName") or "")
    space = metadata.get("namespace")
    place = f"{space}/{name}" if space else name
    return f"{one.get('kind', 'object')} {place}".rstrip()


def _is_list(value: Raw) -> bool:
    return str(value.get("kind", "")).endswith("List") and isinstance(value.get("items"), list)


def _items(value: Raw) -> list[Raw]:
    return list(value["items"]) if _is_list(value) else [value]


def _without_nulls(value: Any) -> Any:
    """A field that is null says no more than one that is absent, to the API server too."""
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _with_nulls(old: Any, new: Any) -> Any:
    """`new` with the nulls that `old` has, which nobody asked to take out."""
    if isinstance(old, dict) and isinstance(new, dict):
        made = {name: _with_nulls(old.get(name), item) for name, item in new.items()}
        return made | {name: None for name, item in old.items() if item is None and name not in new}
    if isinstance(old, list) and isinstance(new, list):
        pairs = [_with_nulls(*pair) for pair in zip(old, new, strict=False)]
        return pairs + new[len(old) :]
    return new
