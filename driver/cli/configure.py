"""How a process gets its settings: from a file, then from what the command line sets."""

from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from driver.model.errors import QuadrantError

S = TypeVar("S", bound=msgspec.Struct)


class SettingsError(QuadrantError):
    """The settings cannot be used; the text says which one and why."""


def load(kind: type[S], file: str | None, sets: list[str]) -> S:
    """The settings of this kind: those of the YAML file, overruled by each `name=value` of `sets`.

    Values are YAML, names are those of the file, dots lead into it. Raises `SettingsError`; an
    unknown name is refused.
    """
    document = _read(file) if file is not None else {}
    for assignment in sets:
        name, equals, value = assignment.partition("=")
        if not equals or not name:
            raise SettingsError(f"--set {assignment!r}: expected NAME=VALUE")
        _put(document, name.split("."), yaml.safe_load(value) if value else "")
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        known = ", ".join(field.encode_name for field in msgspec.structs.fields(kind))
        raise SettingsError(f"settings: {error}; known are: {known}") from error


def _read(file: str) -> dict[str, Any]:
    try:
        document = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SettingsError(f"settings file {file} cannot be read: {error}") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise SettingsError(f"settings file {file}: expected names with values")
    return document


def _put(document: dict[str, Any], path: list[str], value: Any) -> None:
    for name in path[:-1]:
        inner = document.setdefault(name, {})
        if not isinstance(inner, dict):
            raise SettingsError(f"--set {'.'.join(path)}: {name} has no parts")
        document = inner
    document[path[-1]] = value
