"""The state behind the fake API server: objects, versions, history. No HTTP here."""

import copy
import itertools
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

Json = dict[str, Any]

# What the plain endpoint leaves alone because it has an endpoint of its own.
WITH_STATUS = frozenset({"pods", "nodes", "resourceclaims"})


class Refusal(Exception):  # noqa: N818 # an answer, not a mistake
    """An answer other than success."""

    def __init__(
        self, code: int, reason: str, message: str = "", causes: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message or reason
        self.causes = causes

    def status(self) -> Json:
        """The `Status` object that says so."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": self.code,
            "reason": self.reason,
            "message": self.message,
            "details": {"causes": [{"reason": cause} for cause in self.causes]},
        }


class Key(NamedTuple):
    """Where an object is: collection ("/api/v1/pods"), namespace, name."""

    collection: str
    namespace: str
    name: str


class Change(NamedTuple):
    """One entry of the history; `old` and `new` as in etcd's events."""

    version: int
    key: Key
    old: Json | None
    new: Json | None


class Objects:
    """All objects of a cluster, with etcd's single row of versions."""

    def __init__(self) -> None:
        self.version = 100
        self.compacted = 0
        self.objects: dict[Key, Json] = {}
        self.history: list[Change] = []
        self.listeners: list[Callable[[Change], None]] = []
        # Per collection: looks at (old, new) before it is stored; may change it or refuse.
        self.admission: dict[str, Callable[[Json | None, Json], Json]] = {}
        self._names = itertools.count(1)

    def get(self, key: Key) -> Json:
        """The object, or a refusal with 404."""
        if key not in self.objects:
            raise Refusal(404, "NotFound", f"{key.collection} {key.name!r} not found")
        return self.objects[key]

    def in_collection(self, collection: str, namespace: str = "") -> list[Json]:
        """The objects in the order of their names."""
        return [
            item
            for key, item in sorted(self.objects.items(), key=lambda pair: pair[0])
            if key.collection == collection and namespace in ("", key.namespace)
        ]

    def create(self, key: Key, item: Json, *, dry_run: bool = False) -> Json:
        """Store a new object; a missing name is generated."""
        item = copy.deepcopy(item)
        metadata = item.setdefault("metadata", {})
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = f"{metadata['generateName']}{next(self._names):05x}"
        key = key._replace(name=metadata.get("name") or key.name)
        if key in self.objects:
            raise Refusal(409, "AlreadyExists", f"{key.name} already exists")
        metadata["name"] = key.name
        if key.namespace:
            metadata["namespace"] = key.namespace
        metadata.setdefault("uid", str(uuid.uuid4()))
        metadata.setdefault("creationTimestamp", "2026-11-01T00:00:00Z")
        return self._store(key, None, self._admit(key, None, item), dry_run=dry_run)

    def update(
        self,
        key: Key,
        change: Callable[[Json], Json],
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Json:
        """Change an object; a resourceVersion in the result is a precondition."""
        old = self.get(key)
        new = change(copy.deepcopy(old))
        expected = new["metadata"].get("resourceVersion")
        if expected and expected != old["metadata"]["resourceVersion"]:
            raise Refusal(409, "Conflict", f"{key.name}: the object has been modified")
        if new["metadata"].get("uid", old["metadata"]["uid"]) != old["metadata"]["uid"]:
            raise Refusal(409, "Conflict", f"{key.name}: the uid does not match")
        new = self._admit(key, old, _allowed(key, old, new, subresource))
        if new == old:
            return old
        meta = new["metadata"]
        if meta.get("deletionTimestamp") and not meta.get("finalizers"):
            return self._remove(key, dry_run=dry_run)
        return self._store(key, old, new, dry_run=dry_run)

    def delete(self, key: Key, preconditions: Json | None = None, *, dry_run: bool = False) -> Json:
        """Remove an object, or mark it when finalizers hold it."""
        old = self.get(key)
        for name, value in (preconditions or {}).items():
            if value and old["metadata"].get(name) != value:
                raise Refusal(409, "Conflict", f"{key.name}: precondition {name} does not hold")
        if old["metadata"].get("finalizers"):
            new = copy.deepcopy(old)
            new["metadata"]["deletionTimestamp"] = "2026-11-01T00:00:01Z"
            return self._store(key, old, new, dry_run=dry_run)
        return self._remove(key, dry_run=dry_run)

    def changes(self, after: int) -> list[Change]:
        """The history behind a version; a refusal with 410 where it is forgotten."""
        if after < self.compacted:
            raise Refusal(410, "Expired", f"too old resource version: {after} ({self.compacted})")
        return [change for change in self.history if change.version > after]

    def compact(self) -> None:
        """Forget all history."""
        self.compacted = self.version
        self.history.clear()

    def advance(self, by: int = 1) -> None:
        """Versions pass that are about other things."""
        self.version += by

    def _admit(self, key: Key, old: Json | None, new: Json) -> Json:
        admit = self.admission.get(key.collection)
        return admit(old, new) if admit else new

    def _store(self, key: Key, old: Json | None, new: Json, *, dry_run: bool) -> Json:
        if dry_run:
            return new
        self.version += 1
        new["metadata"]["resourceVersion"] = str(self.version)
        self.objects[key] = new
        self._record(Change(self.version, key, old, new))
        return new

    def _remove(self, key: Key, *, dry_run: bool) -> Json:
        old = self.objects[key]
        if not dry_run:
            self.version += 1
            del self.objects[key]
            self._record(Change(self.version, key, old, None))
        return old

    def _record(self, change: Change) -> None:
        self.history.append(change)
        for listener in list(self.listeners):
            listener(change)


def _allowed(key: Key, old: Json, new: Json, subresource: str) -> Json:
    """What of a change an endpoint lets through."""
    resource = key.collection.rsplit("/", 1)[1]
    if subresource == "status":
        return {**old, "status": new.get("status", {}), "metadata": _kept(old, new)}
    if resource in WITH_STATUS and "status" in old:
        new = {**new, "status": old["status"]}
    return {**new, "metadata": _kept(old, new)}


def _kept(old: Json, new: Json) -> Json:
    fixed = ("uid", "name", "namespace", "creationTimestamp", "resourceVersion")
    return {
        **new["metadata"],
        **{name: old["metadata"][name] for name in fixed if name in old["metadata"]},
    }
