"""Which objects are in the files of a person: reading YAML and JSON, and saying where one stands.

It does not know any kind of object; `driver.cli.simulation.manifests` does.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from driver.model.errors import QuadrantError

_SUFFIXES = (".yaml", ".yml", ".json")
_STDIN = "-"
# What `quadrant snapshot` writes: a list, with a head that says something itself.
SNAPSHOT = "Snapshot"
# The loader in C reads the same language eight times as fast; not every build of PyYAML has it.
_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class ManifestError(QuadrantError):
    """What a person wrote cannot be used; the text names file, document, field and expectation."""


class Document(msgspec.Struct, frozen=True):
    """One object with the file and the place in it that it comes from; places count from 1."""

    file: str
    number: int
    raw: dict[str, Any]

    @property
    def kind(self) -> str:
        """The object's kind."""
        return str(self.raw.get("kind", ""))

    @property
    def name(self) -> str:
        """The object's own name, or what its generated name begins with."""
        metadata = self.raw.get("metadata")
        found = metadata if isinstance(metadata, dict) else {}
        return str(found.get("name") or found.get("generateName") or "")

    @property
    def exists(self) -> bool:
        """Whether a cluster has this object already: only such a one has a UID."""
        metadata = self.raw.get("metadata")
        return bool(isinstance(metadata, dict) and metadata.get("uid"))

    def error(self, field: str, problem: str) -> ManifestError:
        """The error about one of the object's fields (empty: about the object as a whole)."""
        what = f"{self.kind} {self.name}".strip()
        where = f"{self.file}, document {self.number}" + (f" ({what})" if what else "")
        return ManifestError(f"{where}: {field}: {problem}" if field else f"{where}: {problem}")


def read(paths: Iterable[str]) -> tuple[Document, ...]:
    """All objects of these files, of the files in these folders, or of stdin ("-"), in order.

    The items of a List count as documents of their own, those of a Snapshot after its head. Raises
    `ManifestError`.
    """
    return tuple(
        document
        for path in paths
        for name, text in texts(path)
        for document in _documents(name, text)
    )


def texts(path: str) -> Iterator[tuple[str, str]]:
    """The name and text of a file, of the files in a folder, or of stdin; `ManifestError`."""
    if path == _STDIN:
        yield "stdin", sys.stdin.read()
        return
    place = Path(path)
    if place.is_dir():
        found = sorted(entry for entry in place.iterdir() if entry.suffix in _SUFFIXES)
        if not found:
            raise ManifestError(f"{path}: the folder holds no file that ends in .yaml or .json")
    else:
        found = [place]
    for file in found:
        try:
            yield str(file), file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise ManifestError(
                f"{file}: cannot be read: {reason}; expected a YAML or JSON file, or a folder"
            ) from error


def _documents(file: str, text: str) -> Iterator[Document]:
    number = 0
    try:
        # Loaded at once: an error at the end of a file must not leave half of it done.
        loaded = list(yaml.load_all(text, Loader=_LOADER))
    except yaml.YAMLError as error:
        raise ManifestError(f"{file}: is no YAML: {_one_line(error)}") from error
    for value in loaded:
        if value is None:
            continue
        for item in _items(value):
            number += 1
            if not isinstance(item, dict):
                raise Document(file, number, {}).error(
                    "", f"expected an object with apiVersion and kind, found {item!r:.60}"
                )
            yield Document(file, number, _without_nulls(item))


def _items(value: Any) -> list[Any]:
    if isinstance(value, dict) and value.get("kind") == "List" and "items" in value:
        return list(value["items"] or ())
    if isinstance(value, dict) and value.get("kind") == SNAPSHOT:
        head = {name: part for name, part in value.items() if name != "items"}
        return [head, *(value.get("items") or ())]
    return [value]


def _without_nulls(value: Any) -> Any:
    """A field that is null says no more than one that is absent, to the API server too."""
    if isinstance(value, dict):
        return {str(key): _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _one_line(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
    return " ".join(str(error).split())
