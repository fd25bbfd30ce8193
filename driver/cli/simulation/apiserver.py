"""What an API server does with objects: UIDs, names, versions, preconditions, watches.

Raw objects in memory. It does not validate: what comes in has been checked, or was made by code
that is under simulation.
"""

import copy
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from driver.model.errors import QuadrantError
from driver.model.ids import ObjectKey
from driver.simulator import identity

Raw = dict[str, Any]


class ConflictError(QuadrantError):
    """A write that rests on another version than the stored one."""


class ApiServer:
    """All objects by kind and place. `watch` is told of every version that is stored, at once."""

    def __init__(self, watch: Callable[[Raw], None]) -> None:
        self._objects: dict[tuple[str, ObjectKey], Raw] = {}
        self._version = 0
        self._watch = watch
        # How many names were tried for a base.
        self._tries: Counter[tuple[str, str, str]] = Counter()

    def create(self, raw: Mapping[str, Any]) -> Raw:
        """Store a new object under its name, or one made from its `generateName`.

        It begins without a status, whatever the creator says.
        """
        made = copy.deepcopy(dict(raw))
        made.pop("status", None)
        metadata = made["metadata"]
        kind, namespace = made["kind"], metadata.get("namespace", "")
        if "name" not in metadata:
            metadata["name"] = self._free_name(kind, namespace, metadata["generateName"])
        metadata["uid"] = identity.uid(f"{kind}/{namespace}/{metadata['name']}")
        return self._store(made)

    def restore(self, raw: Mapping[str, Any]) -> Raw:
        """Store an object that exists already, with its UID and status, as of now."""
        return self._store(copy.deepcopy(dict(raw)))

    def update(self, raw: Mapping[str, Any]) -> Raw:
        """Replace an object; raises `ConflictError` unless it is at the version that `raw` has."""
        metadata = raw["metadata"]
        stored = self._objects[_key(raw)]["metadata"]["resourceVersion"]
        if stored != metadata["resourceVersion"]:
            raise ConflictError(
                f"{raw['kind']} {metadata.get('namespace', '')}/{metadata['name']} is at version "
                f"{stored}, the write rests on {metadata['resourceVersion']}"
            )
        return self._store(copy.deepcopy(dict(raw)))

    def get(self, kind: str, namespace: str, name: str) -> Raw | None:
        """A copy of the object as it is stored; None when there is none."""
        return copy.deepcopy(self._objects.get((kind, ObjectKey(namespace, name))))

    def all(self, kind: str) -> tuple[Raw, ...]:
        """Copies of all objects of a kind, in the order of their creation."""
        return tuple(copy.deepcopy(raw) for key, raw in self._objects.items() if key[0] == kind)

    def _free_name(self, kind: str, namespace: str, base: str) -> str:
        while True:
            attempt = self._tries[kind, namespace, base]
            self._tries[kind, namespace, base] += 1
            name = identity.generated_name(base, f"{kind}/{namespace}/{base}/{attempt}")
            if (kind, ObjectKey(namespace, name)) not in self._objects:
                return name

    def _store(self, raw: Raw) -> Raw:
        self._version += 1
        raw["metadata"]["resourceVersion"] = str(self._version)
        self._objects[_key(raw)] = raw
        self._watch(copy.deepcopy(raw))
        return copy.deepcopy(raw)


def _key(raw: Mapping[str, Any]) -> tuple[str, ObjectKey]:
    metadata = raw["metadata"]
    return raw["kind"], ObjectKey(metadata.get("namespace", ""), metadata["name"])
