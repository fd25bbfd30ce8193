import asyncio
import io
import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from driver.obs.logging import configure, operation


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    handlers, level = list(logging.root.handlers), logging.root.level
    yield
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


@pytest.fixture
def out() -> io.StringIO:
    """Where the log goes; no terminal."""
    stream = io.StringIO()
    configure(stream=stream)
    return stream


def lines(out: io.StringIO) -> list[dict[str, Any]]:
    """The log as written so far."""
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_line_is_one_json_object(out: io.StringIO) -> None:
    """Time in UTC, level, logger, message, and the fields as given."""
    structlog.get_logger("driver.kube").info("placed", pod="a/b", gpus=2, place=("n1", "gpu-0"))
    (line,) = lines(out)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", line.pop("time"))
    assert line == {
        "level": "info",
        "logger": "driver.kube",
        "message": "placed",
        "pod": "a/b",
        "gpus": 2,
        "place": ["n1", "gpu-0"],
    }


def test_lines_of_libraries_look_the_same(out: io.StringIO) -> None:
    """Also within an operation, and with a traceback."""
    with operation() as identifier:
        try:
            1 / 0  # noqa: B018 # raises
        except ZeroDivisionError:
            logging.getLogger("aiohttp.server").exception("failed on %s", "x")
    (line,) = lines(out)
    assert (line["message"], line["operation"]) == ("failed on x", identifier)
    assert "ZeroDivisionError" in line["exception"]


def test_lines_below_the_level_are_not_written(out: io.StringIO) -> None:
    """Debug lines and requests served are silent by default."""
    structlog.get_logger("a").debug("detail")
    logging.getLogger("aiohttp.access").info("GET /livez")
    assert lines(out) == []


def test_a_value_that_is_no_json_is_written_as_text(out: io.StringIO) -> None:
    """A log line never fails for its fields."""
    structlog.get_logger("a").info("odd", value=object(), error=ValueError("no"))
    (line,) = lines(out)
    assert line["value"].startswith("<object")
    assert line["error"] == "no"


async def test_all_lines_of_a_flow_carry_one_operation(out: io.StringIO) -> None:
    """Nested blocks and started tasks keep it; another flow has another."""
    log = structlog.get_logger("a")

    async def child() -> None:
        with operation(step="child"):
            log.info("in the child")

    with operation(claim="a/b") as first:
        log.info("begin")
        await asyncio.create_task(child())
    with operation() as second:
        log.info("other")
    log.info("outside")
    assert [line.get("operation") for line in lines(out)] == [first, first, second, None]
    assert [line.get("claim") for line in lines(out)] == ["a/b", "a/b", None, None]
    assert lines(out)[1]["step"] == "child"
    assert first != second
    assert re.fullmatch("[0-9a-f]{8}", first)


def test_a_terminal_gets_words_not_json() -> None:
    """For a person who runs the program by hand."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    configure("debug", stream=stream)
    structlog.get_logger("a").debug("hello", pod="x")
    text = stream.getvalue()
    assert "hello" in text
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)


def test_a_command_says_warnings_on_stderr_and_nothing_else() -> None:
    """What a library of ours notes in passing must not get into a command's output."""
    code = (
        "import structlog; from driver.obs import logging; logging.quietly(); "
        "log = structlog.get_logger('x'); log.info('noted'); log.warning('odd', why='because')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert done.stderr == "event='odd' why='because'\n"
