"""How the process logs: one line per event, JSON for machines, colours for a terminal.

Every line of one flow (one admission review, one kubelet call, one placement) carries the same
8-hex `operation`, bound with `operation()` and inherited by the tasks that the flow starts. Lines
of libraries that use the standard `logging` come out in the same form.
"""

import logging
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import msgspec
import structlog
from structlog.typing import EventDict, Processor

LEVELS = ("debug", "info", "warning", "error")
_OPERATION = "operation"


def configure(level: str = "info", *, stream: TextIO | None = None) -> None:
    """Set up logging for the whole process; a later call replaces an earlier one.

    `level` is one of LEVELS. `stream` is stderr by default: stdout belongs to a command's output.
    """
    out = stream or sys.stderr
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_context(), processors=_rendering(terminal=out.isatty())
        )
    )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # A request per line is no event.
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_context(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def quietly() -> None:
    """For commands that a person runs: warnings and errors to stderr, and nothing else.

    Leaves alone what is configured already.
    """
    if structlog.is_configured():
        return
    structlog.configure(
        processors=[_warnings_only, structlog.processors.KeyValueRenderer(key_order=["event"])],
        # Looked up at every line: who calls us may have put another stream in its place.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )


def _warnings_only(_: object, method: str, event: EventDict) -> EventDict:
    if method in {"debug", "info"}:
        raise structlog.DropEvent
    return event


@contextmanager
def operation(flow: str = "", **fields: object) -> Iterator[str]:
    """Bind an operation id, and `fields`, to every line of the block; gives the id.

    Within an operation the id stays the same, so that a flow keeps one id from end to end. `flow`
    is the id of a flow that goes on here though no task of its own leads here.
    """
    bound = structlog.contextvars.get_contextvars().get(_OPERATION)
    identifier = bound if isinstance(bound, str) else flow or secrets.token_hex(4)
    with structlog.contextvars.bound_contextvars(**{_OPERATION: identifier}, **fields):
        yield identifier


def _context() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.StackInfoRenderer(),
    ]


def _rendering(*, terminal: bool) -> list[Processor]:
    drop = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    if terminal:
        return [drop, structlog.dev.ConsoleRenderer(timestamp_key="time")]
    return [
        drop,
        structlog.processors.format_exc_info,
        structlog.processors.EventRenamer("message"),
        structlog.processors.JSONRenderer(serializer=_json),
    ]


def _json(event: object, **_: object) -> str:
    return msgspec.json.encode(event, enc_hook=str).decode()
