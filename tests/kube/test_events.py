import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from driver.kube.events import Limits, Recorder, Subject
from driver.kube.rest import Rest
from driver.model.events import EventKind
from tests.kube.apiserver import ApiServer
from tests.kube.clock import FakeClock
from tests.kube.objects import Json, Refusal
from tests.kube.watcher import until

EVENTS = "/apis/events.k8s.io/v1/events"
POD = Subject(api_version="v1", kind="Pod", namespace="team", name="web-1", uid="u1")
PLACED = EventKind(reason="Placed", action="Place", on=("Pod",), note="", meaning="")
FULL = EventKind(reason="Full", action="Place", warning=True, on=("Node",), note="", meaning="")
REFUSED = EventKind(reason="Refused", action="Commit", on=("Pod",), note="", meaning="")
Tell = Callable[..., None]


@pytest.fixture
def recorder(rest: Rest, clock: FakeClock) -> Recorder:
    """A recorder at rest."""
    limits = Limits(waiting=5, variants=3)
    return Recorder(
        rest, controller="quadrant.dev/controller", instance="c-0", limits=limits, clock=clock
    )


@asynccontextmanager
async def writing(recorder: Recorder) -> AsyncIterator[None]:
    """A recorder at work; everything is written at the end."""
    task = asyncio.create_task(recorder.run())
    yield
    await until(lambda: not recorder._awake.is_set())
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def events(server: ApiServer) -> list[Json]:
    """What users see."""
    return server.objects.in_collection(EVENTS)


async def test_an_event_says_what_happened_to_what(server: ApiServer, recorder: Recorder) -> None:
    """All fields that the API server demands are there."""
    async with writing(recorder):
        recorder.record(POD, PLACED, "on n1, GPU 3")
    (event,) = events(server)
    metadata = event.pop("metadata")
    assert metadata["name"].startswith("web-1.")
    assert metadata["namespace"] == "team"
    assert event.pop("eventTime").endswith("Z")
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "type": "Normal",
        "reason": "Placed",
        "action": "Place",
        "note": "on n1, GPU 3",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "team",
            "name": "web-1",
            "uid": "u1",
        },
        "reportingController": "quadrant.dev/controller",
        "reportingInstance": "c-0",
    }


async def test_a_cluster_wide_object_has_its_events_in_default(
    server: ApiServer, recorder: Recorder
) -> None:
    """As the API server demands."""
    async with writing(recorder):
        node = Subject(api_version="v1", kind="Node", name="n1")
        recorder.record(node, FULL, "no GPU left")
    (event,) = events(server)
    assert (event["metadata"]["namespace"], event["type"]) == ("default", "Warning")


async def test_repetitions_become_a_count(
    server: ApiServer, recorder: Recorder, clock: FakeClock
) -> None:
    """Written once at first, then at most once a minute with the count so far."""
    async with writing(recorder):
        for _ in range(5):
            recorder.record(POD, REFUSED, "no device is free")
    assert len(server.requests) == 1
    clock.time += 60
    async with writing(recorder):
        recorder.record(POD, REFUSED, "no device is free")
    (event,) = events(server)
    assert event["series"]["count"] == 6
    assert len(server.requests) == 2


async def test_an_event_that_the_server_forgot_is_made_again(
    server: ApiServer, recorder: Recorder, clock: FakeClock
) -> None:
    """The API server keeps events for an hour."""
    async with writing(recorder):
        recorder.record(POD, REFUSED, "no")
    (event,) = events(server)
    server.remove(EVENTS, event["metadata"]["name"], "team")
    clock.time += 60
    async with writing(recorder):
        recorder.record(POD, REFUSED, "no")
    assert len(events(server)) == 1


async def test_an_object_that_changes_its_story_is_not_followed(
    server: ApiServer, recorder: Recorder, clock: FakeClock
) -> None:
    """Until it has been quiet for a while. Other reasons and objects are not affected."""
    async with writing(recorder):
        for number in range(9):
            recorder.record(POD, REFUSED, f"try {number}")
        recorder.record(POD, PLACED, "at last")
    assert len(events(server)) == 4
    assert recorder.dropped == {"too many variants": 6}
    clock.time += 600
    async with writing(recorder):
        recorder.record(POD, REFUSED, "again")
    assert len(events(server)) == 5


async def test_a_full_queue_drops_and_counts(server: ApiServer, recorder: Recorder) -> None:
    """Recording never waits."""
    for number in range(8):
        pod = Subject(api_version="v1", kind="Pod", namespace="team", name=f"p{number}")
        recorder.record(pod, PLACED, "here")
    async with writing(recorder):
        pass
    assert len(events(server)) == 5
    assert recorder.dropped == {"queue full": 3}


async def test_an_event_that_is_refused_is_counted_and_the_next_is_written(
    server: ApiServer, recorder: Recorder
) -> None:
    """A namespace on its way out refuses new objects."""
    server.refuse(Refusal(403, "Forbidden", "the namespace is being terminated"))
    async with writing(recorder):
        recorder.record(POD, PLACED, "one")
        recorder.record(POD, PLACED, "two")
    assert [event["note"] for event in events(server)] == ["two"]
    assert recorder.dropped == {"not written": 1}


@pytest.mark.parametrize("note", ["x" * 5000, "ü" * 5000, "x" * 1023 + "ü", "x" * 1024])
async def test_a_long_note_is_cut_to_what_the_server_takes(
    server: ApiServer, recorder: Recorder, note: str
) -> None:
    """The limit is in bytes; no character is cut in two."""
    async with writing(recorder):
        recorder.record(POD, PLACED, note)
    (event,) = events(server)
    assert 1018 <= len(event["note"].encode()) <= 1024
    assert event["note"].rstrip("…") == note[: len(event["note"].rstrip("…"))]


@pytest.mark.parametrize(("took", "pause"), [(0.0, 0.05), (0.01, 0.09), (0.2, 1.8), (60.0, 5.0)])
async def test_a_slow_api_server_is_written_to_seldom(
    server: ApiServer, recorder: Recorder, clock: FakeClock, *, took: float, pause: float
) -> None:
    """Events make way for what is more important, and still come."""

    def slow(_: object) -> None:
        clock.time += took

    server.faults.append(slow)
    async with writing(recorder):
        recorder.record(POD, PLACED, "on n1")
    assert len(events(server)) == 1
    assert clock.slept == [pytest.approx(pause)]
