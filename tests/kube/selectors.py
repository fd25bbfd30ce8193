"""Label and field selectors, as far as tests need them."""

from collections.abc import Mapping
from typing import Any


class Selector:
    """The `labelSelector` and `fieldSelector` of a query: terms `a`, `!a`, `a=b`, `a!=b`."""

    def __init__(self, query: Mapping[str, str]) -> None:
        self._labels = [term for term in query.get("labelSelector", "").split(",") if term]
        self._fields = [term for term in query.get("fieldSelector", "").split(",") if term]

    def matches(self, item: dict[str, Any]) -> bool:
        """Whether all terms hold."""
        labels = item["metadata"].get("labels") or {}
        return all(_holds(term, labels.get) for term in self._labels) and all(
            _holds(term, lambda path: _field(item, path)) for term in self._fields
        )


def _holds(term: str, value: Any) -> bool:
    if "!=" in term:
        name, _, expected = term.partition("!=")
        return bool(value(name) != expected)
    if "=" in term:
        name, _, expected = term.replace("==", "=").partition("=")
        return bool(value(name) == expected)
    if term.startswith("!"):
        return value(term[1:]) is None
    return value(term) is not None


def _field(item: Any, path: str) -> str:
    for part in path.split("."):
        item = item.get(part, {}) if isinstance(item, dict) else {}
    return item if isinstance(item, str) else ""
