"""docs/reference/events.md: every Event that is written."""

from collections.abc import Iterator

from driver.model.events import ALL, EventKind
from hack.reference.markdown import linked, page, prose, table


def text() -> str:
    """The page."""
    return page("Events", _lines())


def _lines() -> Iterator[str]:
    yield from prose(
        """
        What Quadrant writes on objects (`kubectl describe`, `kubectl events`). Names in
        capitals stand for what differs. Repetitions become a count; the API server keeps Events
        for an hour by default. `reportingController` is `DRIVER/controller`, or
        `quadrant.dev/node` for the plugin.
        """
    )
    yield from table(
        ("reason", "type", "on"),
        ((f"[{kind.reason}](#{kind.reason.lower()})", _type(kind), ", ".join(kind.on))
         for kind in ALL),
    )  # fmt: skip
    for kind in ALL:
        yield f"## {kind.reason}"
        yield ""
        yield f"{_type(kind)}, on: {', '.join(kind.on)}; action `{kind.action}`."
        yield ""
        yield f"    {kind.note}"
        yield ""
        yield linked(kind.meaning)
        if kind.remedy:
            yield ""
            yield f"**What to do.** {linked(kind.remedy)}"
        yield ""


def _type(kind: EventKind) -> str:
    return "Warning" if kind.warning else "Normal"
