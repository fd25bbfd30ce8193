"""What is in the cluster of one kind, kept up to date for as long as the process lives.

Modelled on client-go's reflector and shared informer: a consistent list, then a watch from there;
when the watch's place is forgotten, a list again, of which only the differences are told. Knows
how to list, watch, resume and wait. What the objects mean is the handler's business.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Generic, Never

import msgspec
import structlog

from driver.kube.backoff import Backoff, Clock, Random, SystemClock
from driver.kube.errors import BadRequest, Gone, Invalid, KubeError, Retryable
from driver.kube.rest import Rest
from driver.kube.store import Event, Store, Synced, T, Unreadable, key_of, version_of
from driver.kube.watch import INITIAL_EVENTS_END, Silence, Watch, WatchEvent, header
from driver.model.api import ObjectMeta
from driver.model.errors import InvalidObjectError, QuadrantError
from driver.model.ids import ObjectKey
from driver.wire.decode import decode

Handler = Callable[[Event[T]], None]
_log = structlog.get_logger(__name__)


class HandlerError(QuadrantError):
    """The reader of an informer's events failed on one of them; the cause is attached."""


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """The times of an informer, in seconds.

    The API server sends a bookmark about every minute: twice that without a word means that the
    connection is dead. It is asked to end a watch after `lifetime` to twice `lifetime`.
    """

    lifetime: float = 300.0
    idle: float = 120.0
    shortest_wait: float = 0.1
    longest_wait: float = 30.0


class _Listing(Generic[T]):
    """A list while it is being read, complete or not."""

    def __init__(self, wish: int) -> None:
        # How many relists had been asked for when this one began.
        self.wish = wish
        self.items: dict[ObjectKey, T] = {}
        self.unreadable: dict[ObjectKey, Unreadable] = {}

    def put(self, read: T | Unreadable) -> None:
        if isinstance(read, Unreadable):
            self.unreadable[read.key] = read
            self.items.pop(read.key, None)
        else:
            key = key_of(read.metadata)
            self.items[key] = read
            self.unreadable.pop(key, None)

    def remove(self, key: ObjectKey) -> None:
        self.items.pop(key, None)
        self.unreadable.pop(key, None)


class Informer(Generic[T]):
    """Lists and watches one collection; `run` it as a task.

    `on_event` is called in the event loop, one event at a time, in the server's order; for one
    object the versions only rise. It must not block. What it raises ends `run`: a reader that
    missed an event must not go on.

    Read at any time: `objects` (what was delivered last), `seen` (every change up to this version
    has been delivered), `restarts` (ended connections by reason), `lists` (complete lists read),
    `heard_at` (when the server was last heard, by the clock's monotonic seconds).
    """

    def __init__(  # noqa: PLR0913 # what to read, for whom, and the two sources of chance
        self,
        rest: Rest,
        path: str,
        kind: type[T],
        *,
        on_event: Handler[T],
        label_selector: str = "",
        field_selector: str = "",
        pace: Pace | None = None,
        clock: Clock | None = None,
        jitter: Random = random.random,
    ) -> None:
        self.path = path
        self.seen = 0
        self.restarts: Counter[str] = Counter()
        self.lists = 0
        self.heard_at: float | None = None
        self._rest = rest
        self._kind = kind
        self._on_event = on_event
        selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
        self._selectors = {name: value for name, value in selectors.items() if value}
        self._pace = pace or Pace()
        self._clock = clock or SystemClock()
        self._jitter = jitter
        self._backoff = Backoff(
            base=self._pace.shortest_wait, cap=self._pace.longest_wait, jitter=jitter
        )
        self._store: Store[T] = Store()
        self._listing: _Listing[T] | None = None
        self._streams_lists = True
        self._watch: Watch | None = None
        # Lists asked for so far, and how many of these a finished list has answered.
        self._wishes = 1
        self._fulfilled = 0
        self._waiters: list[tuple[int, asyncio.Future[int]]] = []

    @property
    def objects(self) -> Mapping[ObjectKey, T]:
        """The objects as last delivered; a live view."""
        return MappingProxyType(self._store.objects)

    @property
    def has_synced(self) -> bool:
        """Whether a first complete list has been delivered."""
        return self._fulfilled > 0

    async def synced(self) -> int:
        """Wait for the first complete list; gives `seen`."""
        return await self._list_number(1)

    async def relist(self) -> int:
        """Read a consistent list begun after this call, and deliver the differences.

        Gives the list's version when its Synced event has been delivered. Needs `run` to be
        running; calls at the same time share one list.
        """
        self._wishes += 1
        if self._watch is not None:
            self._watch.stop()
        return await self._list_number(self._wishes)

    async def run(self) -> Never:
        """Follow the collection for ever; raises only HandlerError."""
        while True:
            began = self._clock.now()
            reason, least_wait = await self._connection()
            self.restarts[reason] += 1
            if self._clock.now() - began > self._pace.longest_wait:
                self._backoff.reset()
            await self._clock.sleep(max(self._backoff.next(), least_wait))

    async def _connection(self) -> tuple[str, float]:
        """List if need be, then watch until that ends: why it did, and the least time to wait."""
        try:
            while self._must_list and not self._streams_lists:
                await self._read_pages()
            await self._follow()
        except KubeError as error:
            self._learn(error)
            wait = (error.retry_after or 0.0) if isinstance(error, Retryable) else 0.0
            _log.warning("watch interrupted", path=self.path, error=str(error), seen=self.seen)
            return type(error).__name__, wait
        finally:
            self._listing = None
            self._watch = None
        return "closed", 0.0

    @property
    def _must_list(self) -> bool:
        return self._fulfilled < self._wishes

    def _learn(self, error: KubeError) -> None:
        if isinstance(error, BadRequest | Invalid) and self._must_list:
            # The WatchList feature is off, or unknown to this server.
            self._streams_lists = False
        elif isinstance(error, Gone | Silence):
            self._wishes += 1

    async def _read_pages(self) -> None:
        listing: _Listing[T] = _Listing(self._wishes)
        version = 0
        async for page in self._rest.pages(self.path, params=self._selectors):
            self.heard_at = self._clock.now()
            version = version_of(ObjectMeta(resource_version=page.metadata.resource_version))
            for raw in page.items or ():
                listing.put(self._decode(raw))
        self._finish(listing, version)

    async def _follow(self) -> None:
        params = self._selectors | {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(int(self._pace.lifetime * (1 + self._jitter()))),
        }
        if self._must_list:
            self._listing = _Listing(self._wishes)
            params |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        else:
            params["resourceVersion"] = str(self.seen)
        self._watch = Watch(self._rest.session, self.path, params)
        await self._watch.run(self._receive, idle=self._pace.idle)

    def _receive(self, event: WatchEvent) -> None:
        self.heard_at = self._clock.now()
        if self._listing is None:
            self._backoff.reset()
        if event.type == "BOOKMARK":
            self._bookmark(header(event.object))
        elif event.type == "DELETED":
            self._remove(header(event.object))
        else:
            self._put(self._decode(event.object))

    def _bookmark(self, metadata: ObjectMeta) -> None:
        version = version_of(metadata)
        if self._listing is None:
            self.seen = version
        elif metadata.annotations.get(INITIAL_EVENTS_END) == "true":
            listing, self._listing = self._listing, None
            self._finish(listing, version)

    def _remove(self, metadata: ObjectMeta) -> None:
        if self._listing is not None:
            self._listing.remove(key_of(metadata))
        else:
            self._deliver(self._store.remove(metadata))
            self.seen = version_of(metadata)

    def _put(self, read: T | Unreadable) -> None:
        if self._listing is not None:
            self._listing.put(read)
        elif isinstance(read, Unreadable):
            self._deliver(self._store.put_unreadable(read))
            self.seen = read.resource_version
        else:
            self._deliver(self._store.put(read))
            self.seen = version_of(read.metadata)

    def _finish(self, listing: _Listing[T], version: int) -> None:
        self._deliver(self._store.replace(listing.items, listing.unreadable, version))
        self.seen = version
        self.lists += 1
        self._fulfilled = listing.wish
        self._deliver([Synced(resource_version=version)])
        waiting, self._waiters = self._waiters, []
        for number, waiter in waiting:
            if number > self._fulfilled:
                self._waiters.append((number, waiter))
            elif not waiter.done():
                waiter.set_result(version)

    def _deliver(self, events: list[Event[T]]) -> None:
        for event in events:
            try:
                self._on_event(event)
            except Exception as error:
                what = f"{type(event).__name__} at version {event.resource_version}"
                raise HandlerError(f"{self.path}: the reader failed on {what}: {error}") from error

    def _decode(self, raw: msgspec.Raw) -> T | Unreadable:
        try:
            return decode(self._kind, raw)
        except InvalidObjectError as error:
            metadata = header(raw)
            _log.error(
                "object skipped", path=self.path, key=str(key_of(metadata)), error=str(error)
            )
            return Unreadable(
                key=key_of(metadata),
                uid=metadata.uid,
                reason=str(error),
                resource_version=version_of(metadata),
            )

    async def _list_number(self, number: int) -> int:
        if self._fulfilled >= number:
            return self.seen
        waiter: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiters.append((number, waiter))
        return await waiter
