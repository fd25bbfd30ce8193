"""From structs to the schema that Helm reads (JSON Schema, draft 7)."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from hack.valuesschema.descriptions import Path, descriptions
from hack.valuesschema.values import DERIVED, Values

Schema = dict[str, Any]

_DRAFT = "http://json-schema.org/draft-07/schema#"
_REFERENCES = "#/definitions/"


def schema(values_yaml: str) -> str:
    """The text of values.schema.json, with descriptions from the text of values.yaml."""
    (root,), parts = msgspec.json.schema_components([Values], ref_template=f"{_REFERENCES}{{name}}")
    used = Counter(_references([root, *parts.values()]))
    tree = _Tree({name: _settable(name, part) for name, part in parts.items()}, used)
    whole = tree.expanded(root)
    _describe(whole, (), descriptions(values_yaml))
    head = {"$schema": _DRAFT, "title": "Values of the Quadrant chart"}
    text = {**head, **whole, "definitions": tree.shared()}
    return json.dumps(text, indent=2, ensure_ascii=False) + "\n"


def _settable(name: str, part: Schema) -> Schema:
    """A struct's schema without what the chart derives, and without what is said of the struct."""
    derived = DERIVED.get(name, frozenset())
    known = {key: value for key, value in part["properties"].items() if key not in derived}
    required = [key for key in part.get("required", ()) if key not in derived]
    return {
        "type": "object",
        **({"required": required} if required else {}),
        "additionalProperties": False,
        "properties": known,
    }


class _Tree:
    """Definitions: those used once are put in their place, the others stay and are referred to."""

    def __init__(self, parts: Mapping[str, Schema], used: Mapping[str, int]) -> None:
        self._parts = parts
        self._used = used

    def expanded(self, found: Any) -> Any:
        """A schema, or a part of one, with all that is used once in its place."""
        if isinstance(found, list):
            return [self.expanded(item) for item in found]
        if not isinstance(found, dict):
            return found
        name = _reference(found)
        if name is None:
            return {key: self.expanded(value) for key, value in found.items()}
        beside = {key: found[key] for key in found if key not in {"$ref", "default"}}
        if not self._stays(name):
            return {**self.expanded(self._parts[name]), **beside}
        # What stands beside a reference itself does not count in draft 7.
        reference = {"$ref": found["$ref"]}
        return {"allOf": [reference], **beside} if beside else reference

    def shared(self) -> Schema:
        """The definitions that are referred to."""
        names = sorted(name for name in self._parts if self._stays(name))
        return {name: self.expanded(self._parts[name]) for name in names}

    def _stays(self, name: str) -> bool:
        return self._used[name] > 1


def _reference(found: Schema) -> str | None:
    target = found.get("$ref")
    return target.removeprefix(_REFERENCES) if isinstance(target, str) else None


def _references(found: Any) -> Iterator[str]:
    if isinstance(found, list):
        for item in found:
            yield from _references(item)
    if isinstance(found, dict):
        name = _reference(found)
        if name is not None:
            yield name
        yield from _references([value for key, value in found.items() if key != "default"])


def _describe(found: Schema, path: Path, told: Mapping[Path, str]) -> None:
    """Put the descriptions first, where people look for them."""
    for name, part in found.get("properties", {}).items():
        here = (*path, name)
        _describe(part, here, told)
        if here in told:
            found["properties"][name] = {"description": told[here], **part}
