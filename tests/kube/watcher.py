"""A reader of an informer for tests: runs it, keeps what it was told, checks what always holds."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from driver.kube.informer import Informer, Pace
from driver.kube.rest import Rest
from driver.kube.store import Delete, Event, Synced, Unreadable, Upsert
from driver.model.core import Node
from driver.model.ids import ObjectKey

NODES = "/api/v1/nodes"
# Real time, but short: only silence is measured by the event loop's own clock.
PACE = Pace(lifetime=600.0, idle=5.0)


class Reader:
    """Events of nodes in the order of their delivery."""

    def __init__(self) -> None:
        self.events: list[Event[Node]] = []
        self.nodes: dict[ObjectKey, Node] = {}
        self.unreadable: set[ObjectKey] = set()
        self._versions: dict[str, int] = {}

    def __call__(self, event: Event[Node]) -> None:
        """Follow the event, and check that it fits what was told before."""
        self.events.append(event)
        if isinstance(event, Synced):
            return
        if isinstance(event, Upsert):
            key, uid = ObjectKey("", event.object.metadata.name), event.object.metadata.uid
        else:
            key, uid = event.key, event.uid
        assert event.resource_version > self._versions.get(uid, 0), "versions of an object rise"
        self._versions[uid] = event.resource_version
        self.unreadable.discard(key)
        if isinstance(event, Upsert):
            assert event.old == self.nodes.get(key)
            self.nodes[key] = event.object
        elif isinstance(event, Delete):
            assert event.old == self.nodes.pop(key, None)
        else:
            self.unreadable.add(key)

    @property
    def words(self) -> list[str]:
        """The events in short: "+a" for an upsert, "-a" for an end, "?a" unreadable, "=" synced."""
        return [_word(event) for event in self.events]


def _word(event: Event[Node]) -> str:
    match event:
        case Upsert():
            return f"+{event.object.metadata.name}"
        case Delete():
            return f"-{event.key.name}"
        case Unreadable():
            return f"?{event.key.name}"
        case Synced():
            return "="


def node(name: str, **spec: Any) -> dict[str, Any]:
    """A node as JSON."""
    return {"metadata": {"name": name, "labels": {"app": name[0]}}, "spec": spec}


@asynccontextmanager
async def running(
    rest: Rest, reader: Callable[[Event[Node]], None], **arguments: Any
) -> AsyncIterator[Informer[Node]]:
    """An informer of nodes at work, stopped at the end."""
    defaults: dict[str, Any] = {"pace": PACE, "jitter": lambda: 0.0}
    informer = Informer(rest, NODES, Node, on_event=reader, **(defaults | arguments))
    task = asyncio.create_task(informer.run())
    try:
        yield informer
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until something is so; fails after five seconds."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 # the condition is anybody's
            await asyncio.sleep(0.001)
