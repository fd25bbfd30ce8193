"""Spans of OpenTelemetry, from a pod's creation to the preparing of its claims; off by default.

All spans that concern one pod are one trace, whose ID is the pod's UID: both have 128 bits, and
every process knows the UID. So nothing has to be handed on between API server, controller and
plugin, and who looks for the trace of a pod types its UID without the dashes.

Without the extra `otel`, or without an endpoint, a span costs one look at a variable.
"""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from driver.model.errors import QuadrantError

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_NANO = 1_000_000_000
_HALF = (1 << 64) - 1

Value = str | int | float | bool


class TracingError(QuadrantError):
    """Spans are wanted and cannot be sent."""


class _Tracing:
    """OpenTelemetry's API and our tracer, once `configure` has found them wanted."""

    def __init__(self, api: ModuleType, tracer: Any) -> None:
        self._api = api
        self._tracer = tracer

    def start(self, name: str, trace: uuid.UUID, began: float | None) -> Any:
        """A span in this trace, `began` in seconds since 1970; None: now."""
        start = None if began is None else int(began * _NANO)
        return self._tracer.start_span(name, context=self._of(trace.int), start_time=start)

    def _of(self, identifier: int) -> Any:
        """The trace: as if a span of its ID, that nobody sends, were its root."""
        context = self._api.SpanContext(
            trace_id=identifier,
            span_id=identifier & _HALF or 1,
            is_remote=True,
            trace_flags=self._api.TraceFlags(self._api.TraceFlags.SAMPLED),
        )
        return self._api.set_span_in_context(self._api.NonRecordingSpan(context))


_tracing: _Tracing | None = None


def configure(service: str) -> None:
    """Send spans to where OpenTelemetry's own environment variables say, if they say anything.

    Raises `TracingError` when they do and the extra `otel` is not installed.
    """
    if not any(os.environ.get(name) for name in _ENDPOINTS):
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError as error:
        raise TracingError(
            f"{' or '.join(_ENDPOINTS)} is set, but OpenTelemetry is not installed: install "
            "quadrant-dra[otel], or unset it"
        ) from error
    use(BatchSpanProcessor(OTLPSpanExporter()), service)


def use(processor: Any, service: str) -> None:
    """Give all spans from now on to a span processor of OpenTelemetry's SDK."""
    from opentelemetry import trace  # noqa: PLC0415
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415

    provider = TracerProvider(resource=Resource.create({"service.name": service}))
    provider.add_span_processor(processor)
    global _tracing  # noqa: PLW0603 # as logging, it is the process'
    _tracing = _Tracing(trace, provider.get_tracer("quadrant"))


def stop() -> None:
    """Make no more spans."""
    global _tracing  # noqa: PLW0603 # see `use`
    _tracing = None


class Span:
    """What may be said of a span while it lasts; says nothing when nobody listens."""

    def __init__(self, inner: Any = None) -> None:
        self._inner = inner

    def say(self, **attributes: Value) -> None:
        """Add attributes."""
        if self._inner is not None:
            self._inner.set_attributes({f"quadrant.{k}": v for k, v in attributes.items()})


_NOBODY = Span()


@contextmanager
def span(
    name: str, pod_uid: str, *, began: float | None = None, **attributes: Value
) -> Iterator[Span]:
    """A span in the trace of a pod, for as long as the block; from `began` on, if that is given.

    What the block raises is noted on it. Without a pod there is no trace, and no span; nor where
    its UID is none of the API server's.
    """
    trace = _trace(pod_uid) if _tracing is not None else None
    if _tracing is None or trace is None:
        yield _NOBODY
        return
    inner = _tracing.start(name, trace, began)
    made = Span(inner)
    made.say(**attributes)
    try:
        yield made
    except BaseException as error:
        inner.record_exception(error)
        raise
    finally:
        inner.end()


def _trace(pod_uid: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(pod_uid)
    except ValueError:
        return None
