"""What a process would write to its log."""

import io
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import structlog

from driver.obs.logging import configure

Lines = Callable[[], list[dict[str, Any]]]


@contextmanager
def logged(level: str = "debug") -> Iterator[Lines]:
    """Log as a process does, until the block ends; gives the lines so far."""
    handlers, before = list(logging.root.handlers), logging.root.level
    stream = io.StringIO()
    configure(level, stream=stream)
    # The loggers of modules outlive this.
    structlog.configure(**structlog.get_config() | {"cache_logger_on_first_use": False})
    try:
        yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    finally:
        logging.root.handlers[:] = handlers
        logging.root.setLevel(before)
        structlog.reset_defaults()
        structlog.contextvars.clear_contextvars()
