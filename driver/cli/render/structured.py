"""Results for programs: JSON, or the same as YAML."""

from typing import Any

import msgspec
import yaml

_DUMPER: type[yaml.SafeDumper] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def text(found: object, output: str) -> str:
    """The text for `-o json` or `-o yaml`."""
    return as_json(found) if output == "json" else as_yaml(found)


def as_json(found: object) -> str:
    """Indented JSON."""
    return msgspec.json.format(msgspec.json.encode(found), indent=2).decode()


def as_yaml(found: object) -> str:
    """One YAML document, members in the order of the JSON."""
    document: Any = msgspec.to_builtins(found)
    return yaml.dump(document, Dumper=_DUMPER, sort_keys=False, allow_unicode=True).rstrip("\n")
