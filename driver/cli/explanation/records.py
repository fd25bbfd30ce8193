"""What was said at the time: Events of the controller, and the scheduler's last word on the pod.

The API server keeps events for an hour by default; later there is nothing to read.
"""

from collections.abc import Iterable, Iterator

import msgspec

from driver.cli.explanation.report import Recorded
from driver.kube.errors import Forbidden
from driver.kube.rest import Rest
from driver.model import events
from driver.model.api import ApiStruct, ObjectMeta
from driver.model.core import Pod

# Reasons under which the controller explains its choices.
_OURS = frozenset(
    kind.reason
    for kind in (
        events.NODE_NOMINATED,
        events.NO_NODE_FITS,
        events.DEVICES_CHOSEN,
        events.DEVICES_REFUSED,
    )
)
_MOST = 10


class _Series(ApiStruct, frozen=True, kw_only=True):
    last_observed_time: str | None = None


class _Event(ApiStruct, frozen=True, kw_only=True):
    """An event as the core API shows it, whoever wrote it."""

    metadata: ObjectMeta = ObjectMeta()
    reason: str = ""
    message: str = ""
    event_time: str | None = None
    last_timestamp: str | None = None
    series: _Series | None = None


async def recorded(
    rest: Rest, namespace: str, objects: Iterable[tuple[str, str]]
) -> tuple[Recorded, ...]:
    """The controller's events on these objects, by name in words and UID; the oldest first.

    Without the right to list events there are none.
    """
    found: list[Recorded] = []
    for about, uid in objects:
        query = {"fieldSelector": f"involvedObject.uid={uid}"}
        try:
            async for page in rest.pages(f"/api/v1/namespaces/{namespace}/events", params=query):
                found += _read(about, page.items or ())
        except Forbidden:
            continue
    return tuple(sorted(found, key=lambda one: one.time)[-_MOST:])


def _read(about: str, items: Iterable[msgspec.Raw]) -> Iterator[Recorded]:
    for raw in items:
        event = msgspec.json.decode(raw, type=_Event)
        if event.reason in _OURS:
            last = event.series.last_observed_time if event.series is not None else None
            time = last or event.event_time or event.last_timestamp or ""
            yield Recorded(time=time, about=about, reason=event.reason, note=event.message)


def scheduled(pod: Pod) -> tuple[Recorded, ...]:
    """What the scheduler says of a pod that it could not place."""
    return tuple(
        Recorded(
            time="",
            about=f"pod {pod.metadata.name}",
            reason=condition.reason,
            note=condition.message,
        )
        for condition in pod.status.conditions
        if condition.type == "PodScheduled" and condition.status == "False" and condition.message
    )
