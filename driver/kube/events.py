"""What users are told on their objects (`kubectl describe`), without ever holding up a decision.

`record` only puts a sentence aside; `run` writes it when there is time. Telling too much is worse
than telling too little, so repetitions become a count, and an object that changes its story all the
time is not followed. Events are best effort: what cannot be written is counted and dropped.
"""

import asyncio
import datetime as dt
import secrets
from collections import Counter, OrderedDict
from typing import Never

import msgspec
import structlog

from driver.kube.backoff import Clock, SystemClock
from driver.kube.errors import KubeError, NotFound
from driver.kube.rest import Rest
from driver.model.api import ApiStruct
from driver.model.events import EventKind
from driver.wire.encode import encode
from driver.wire.patch import MERGE_PATCH

NOTE_LIMIT = 1024
NAME_LIMIT = 200
INSTANCE_LIMIT = 128
_log = structlog.get_logger(__name__)


class Subject(ApiStruct, frozen=True, kw_only=True):
    """The object that an event is about (`ObjectReference`); cluster-wide: no namespace."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much is told; times in seconds."""

    waiting: int = 4096
    topics: int = 4096
    # A repetition is written at most this often, with the count so far.
    repeat_after: float = 60.0
    # What was not repeated for so long is a new event when it comes again.
    forget_after: float = 600.0
    # Different notes of one reason on one object in that time.
    variants: int = 10
    # Least time between two writes of this process.
    spacing: float = 0.05
    # And at least so many times as long as the last one took, up to a bound: an API server that
    # is slow has more important things to do.
    patience: float = 9.0
    longest_rest: float = 5.0


class _Topic(msgspec.Struct, frozen=True):
    """What is told about one object, whatever the words."""

    subject: Subject
    kind: EventKind


class _Told:
    """One note of a topic: how often it was recorded, and what of that was written."""

    def __init__(self) -> None:
        self.count = 0
        self.last_time = ""
        self.written_at: float | None = None
        self.name = ""


class _Notes:
    """The notes of one topic, and when the last of them was recorded."""

    def __init__(self, now: float) -> None:
        self.last = now
        self.by_text: dict[str, _Told] = {}


class Recorder:
    """Tells stories about objects; `run` it as a task."""

    def __init__(
        self,
        rest: Rest,
        *,
        controller: str,
        instance: str,
        limits: Limits | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`controller` is a qualified name ("quadrant.dev/controller"), `instance` the pod."""
        self.dropped: Counter[str] = Counter()
        self._rest = rest
        self._controller = controller
        self._instance = instance
        self._limits = limits or Limits()
        self._clock = clock or SystemClock()
        self._topics: OrderedDict[_Topic, _Notes] = OrderedDict()
        self._waiting: OrderedDict[tuple[_Topic, str], _Told] = OrderedDict()
        self._awake = asyncio.Event()

    def record(self, subject: Subject, kind: EventKind, note: str) -> None:
        """Tell what happened to an object; the note is a sentence. Returns at once, never fails."""
        topic = _Topic(subject, kind)
        note, now = _cut(note), self._clock.now()
        told = self._note(topic, note, now)
        if told is None:
            self.dropped["too many variants"] += 1
            return
        told.count += 1
        told.last_time = _time()
        if told.written_at is not None and now < told.written_at + self._limits.repeat_after:
            return
        if (topic, note) not in self._waiting and len(self._waiting) >= self._limits.waiting:
            self.dropped["queue full"] += 1
            return
        self._waiting[topic, note] = told
        self._awake.set()

    def _note(self, topic: _Topic, text: str, now: float) -> _Told | None:
        notes = self._topics.get(topic)
        if notes is None or now >= notes.last + self._limits.forget_after:
            notes = self._topics[topic] = _Notes(now)
        self._topics.move_to_end(topic)
        if len(self._topics) > self._limits.topics:
            self._topics.popitem(last=False)
        notes.last = now
        if text not in notes.by_text and len(notes.by_text) >= self._limits.variants:
            return None
        return notes.by_text.setdefault(text, _Told())

    async def run(self) -> Never:
        """Write what is recorded, for ever."""
        while True:
            await self._awake.wait()
            while self._waiting:
                (topic, note), told = self._waiting.popitem(last=False)
                began = self._clock.now()
                await self._write(topic, note, told)
                await self._clock.sleep(self._rest_after(self._clock.now() - began))
            self._awake.clear()

    def _rest_after(self, took: float) -> float:
        limits = self._limits
        return max(limits.spacing, min(limits.patience * took, limits.longest_rest))

    async def _write(self, topic: _Topic, note: str, told: _Told) -> None:
        told.written_at = self._clock.now()
        try:
            if not told.name or not await self._repeat(topic, told):
                await self._create(topic, note, told)
        except KubeError as error:
            self.dropped["not written"] += 1
            _log.debug("event not written", reason=topic.kind.reason, error=str(error))

    async def _create(self, topic: _Topic, note: str, told: _Told) -> None:
        name = f"{topic.subject.name[:NAME_LIMIT].rstrip('.-')}.{secrets.token_hex(8)}"
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": _namespace(topic)},
            "eventTime": told.last_time,
            "type": "Warning" if topic.kind.warning else "Normal",
            "reason": topic.kind.reason,
            "action": topic.kind.action,
            "note": note,
            "regarding": topic.subject,
            "reportingController": self._controller,
            "reportingInstance": self._instance[:INSTANCE_LIMIT],
        }
        await self._rest.create(_collection(topic), encode(body))
        told.name = name

    async def _repeat(self, topic: _Topic, told: _Told) -> bool:
        """Add the count to the event there is; False when the server no longer keeps it."""
        series = {"count": told.count, "lastObservedTime": told.last_time}
        path = f"{_collection(topic)}/{told.name}"
        try:
            await self._rest.patch(path, encode({"series": series}), MERGE_PATCH, repeatable=True)
        except NotFound:
            return False
        return True


def _collection(topic: _Topic) -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{_namespace(topic)}/events"


def _namespace(topic: _Topic) -> str:
    # Events about cluster-wide objects must live here.
    return topic.subject.namespace or "default"


def _cut(note: str) -> str:
    """At most NOTE_LIMIT bytes, which is what the API server counts."""
    data = note.encode()
    if len(data) <= NOTE_LIMIT:
        return note
    return data[: NOTE_LIMIT - len("…".encode())].decode(errors="ignore") + "…"


def _time() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
