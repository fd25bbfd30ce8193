"""Spans as an exporter gets them, and none where nobody listens."""

import uuid
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from driver.obs import tracing

POD = str(uuid.UUID(int=0x1234_5678_9ABC_DEF0_1234_5678_9ABC_DEF0))


@pytest.fixture
def exported() -> Iterator[InMemorySpanExporter]:
    """Where finished spans arrive."""
    exporter = InMemorySpanExporter()
    tracing.use(SimpleSpanProcessor(exporter), "quadrant-test")
    yield exporter
    tracing.stop()


def test_the_trace_of_a_pod_has_its_uid(exported: InMemorySpanExporter) -> None:
    """Spans of several processes find together without being told of each other."""
    with tracing.span("commit", POD, claim="ns/c") as commit:
        commit.say(result="chosen", devices=2)
    with tracing.span("prepare", POD):
        pass
    first, second = exported.get_finished_spans()
    assert f"{first.context.trace_id:032x}" == POD.replace("-", "")
    assert first.context.trace_id == second.context.trace_id
    assert first.context.span_id != second.context.span_id
    assert dict(first.attributes or {}) == {
        "quadrant.claim": "ns/c",
        "quadrant.result": "chosen",
        "quadrant.devices": 2,
    }
    assert first.resource.attributes["service.name"] == "quadrant-test"


def test_a_span_may_have_begun_earlier(exported: InMemorySpanExporter) -> None:
    """As the wait of a pod, from its creation."""
    with tracing.span("place", POD, began=1000.5):
        pass
    (found,) = exported.get_finished_spans()
    assert found.start_time == 1_000_500_000_000


def test_what_is_raised_is_noted_and_goes_on(exported: InMemorySpanExporter) -> None:
    """A span hides no error."""
    with pytest.raises(ValueError, match="no"), tracing.span("commit", POD):
        raise ValueError("no")
    (found,) = exported.get_finished_spans()
    assert [event.name for event in found.events] == ["exception"]


@pytest.mark.parametrize("uid", ["", "no UUID at all"])
def test_without_a_pod_there_is_no_span(exported: InMemorySpanExporter, uid: str) -> None:
    """A claim that nobody owns belongs to no trace; an odd UID ends nobody's work."""
    with tracing.span("commit", uid):
        pass
    assert exported.get_finished_spans() == ()


def test_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an endpoint nothing is set up, and spans cost nothing."""
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    tracing.configure("quadrant-test")
    with tracing.span("commit", "no UUID at all") as silent:
        silent.say(result="chosen")


def test_an_endpoint_without_the_extra_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start, not at the first span."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.sdk.trace.export", None)
    with pytest.raises(tracing.TracingError, match=r"quadrant-dra\[otel\]"):
        tracing.configure("quadrant-test")
