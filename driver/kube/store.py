"""What was last known of the objects of one kind, and what news makes of it. Pure.

The events follow from states, not from the server's words ADDED and MODIFIED: a list that is read
again yields exactly the differences, so a reader never sees an object appear twice or miss its end.
"""

from collections.abc import Iterable, Mapping
from typing import Generic, Protocol, TypeVar

import msgspec

from driver.kube.errors import KubeError
from driver.model.api import ObjectMeta
from driver.model.ids import ObjectKey


class ApiObject(Protocol):
    """Anything with metadata."""

    @property
    def metadata(self) -> ObjectMeta:
        """The object's metadata."""
        ...


T = TypeVar("T", bound=ApiObject)


class Upsert(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """An object is there in a new state; `old` is the state delivered before, if there was one."""

    object: T
    old: T | None
    resource_version: int


class Delete(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """An object is gone, or no longer selected.

    `old` is the state delivered last (None: it never could be read). `resource_version` is that of
    the deletion; where a list had to reveal it, that of the list (`listed`), which is at or after
    the deletion.
    """

    key: ObjectKey
    uid: str
    old: T | None
    resource_version: int
    listed: bool = False


class Unreadable(msgspec.Struct, frozen=True, kw_only=True):
    """An object is there in a state that cannot be decoded; its state before remains stored."""

    key: ObjectKey
    uid: str
    reason: str
    resource_version: int


class Synced(msgspec.Struct, frozen=True, kw_only=True):
    """All differences to a consistent list of this version have been delivered.

    The list came from a quorum, so it holds whatever was committed before it was asked for.
    """

    resource_version: int


Event = Upsert[T] | Delete[T] | Unreadable | Synced


def key_of(metadata: ObjectMeta) -> ObjectKey:
    """Where the object is; the namespace of a cluster-wide one is empty."""
    return ObjectKey(metadata.namespace, metadata.name)


def version_of(metadata: ObjectMeta) -> int:
    """The resourceVersion as the number that it is (KEP-5504), so that versions compare."""
    text = metadata.resource_version
    if not (text.isascii() and text.isdigit()):
        raise KubeError(
            f"{key_of(metadata)} has the resourceVersion {text!r}: expected a decimal number"
        )
    return int(text)


class Store(Generic[T]):
    """The objects of one kind as last delivered."""

    def __init__(self) -> None:
        self.objects: dict[ObjectKey, T] = {}
        self._unreadable: dict[ObjectKey, Unreadable] = {}

    def put(self, item: T) -> list[Event[T]]:
        """An object as a watch shows it. Nothing happens if it is not newer than what is known."""
        known = self.objects.get(key_of(item.metadata))
        same = known is not None and known.metadata.uid == item.metadata.uid
        if known is not None and same and version_of(item.metadata) <= version_of(known.metadata):
            return []
        return self._accept(item, listed=False)

    def put_unreadable(self, news: Unreadable) -> list[Event[T]]:
        """An object that cannot be decoded. The same state is told once only."""
        if self._unreadable.get(news.key) == news:
            return []
        self._unreadable[news.key] = news
        return [news]

    def remove(self, metadata: ObjectMeta) -> list[Event[T]]:
        """An object as a watch shows its end; the version is that of the deletion."""
        return self._drop(key_of(metadata), version_of(metadata), listed=False)

    def replace(
        self,
        items: Mapping[ObjectKey, T],
        unreadable: Mapping[ObjectKey, Unreadable],
        resource_version: int,
    ) -> list[Event[T]]:
        """A complete list of this version: ends first, then new states in the order of versions.

        A list is the truth even where it is older than what is known, as after etcd was restored.
        """
        gone = (self.objects.keys() | self._unreadable.keys()) - items.keys() - unreadable.keys()
        events = _flat(self._drop(key, resource_version, listed=True) for key in sorted(gone))
        for item in sorted(items.values(), key=lambda item: version_of(item.metadata)):
            known = self.objects.get(key_of(item.metadata))
            if known is None or not _same_state(known, item):
                events += self._accept(item, listed=True)
        events += _flat(self.put_unreadable(news) for news in unreadable.values())
        return events

    def _accept(self, item: T, *, listed: bool) -> list[Event[T]]:
        key, version = key_of(item.metadata), version_of(item.metadata)
        events: list[Event[T]] = []
        known = self.objects.get(key)
        if known is not None and known.metadata.uid != item.metadata.uid:
            events = self._drop(key, version, listed=listed)
            known = None
        self._unreadable.pop(key, None)
        self.objects[key] = item
        events.append(Upsert(object=item, old=known, resource_version=version))
        return events

    def _drop(self, key: ObjectKey, version: int, *, listed: bool) -> list[Event[T]]:
        known = self.objects.pop(key, None)
        unreadable = self._unreadable.pop(key, None)
        if known is not None:
            uid = known.metadata.uid
        elif unreadable is not None:
            uid = unreadable.uid
        else:
            return []
        return [Delete(key=key, uid=uid, old=known, resource_version=version, listed=listed)]


def _same_state(one: ApiObject, other: ApiObject) -> bool:
    return (one.metadata.uid, one.metadata.resource_version) == (
        other.metadata.uid,
        other.metadata.resource_version,
    )


def _flat(parts: Iterable[list[Event[T]]]) -> list[Event[T]]:
    return [event for part in parts for event in part]
