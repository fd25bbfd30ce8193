"""All pages of docs/reference by their file's name."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from hack.reference import (
    attributes,
    errors,
    events,
    keys,
    metrics,
    resources,
    settings,
    taints,
)
from hack.reference.markdown import page, prose, table

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference"

_ABOUT: Mapping[str, tuple[Callable[[], str], str]] = {
    "settings.md": (settings.text, "what both processes and the chart can be told"),
    "annotations.md": (keys.text, "annotations, labels and scheduling gates on objects"),
    "resources.md": (resources.text, "resource names in pods that lead to devices"),
    "attributes.md": (attributes.text, "attributes, capacities and counters of devices"),
    "taints.md": (taints.text, "what keeps claims away from a device"),
    "events.md": (events.text, "Events on pods, claims and nodes, and what to do"),
    "errors.md": (errors.text, "the words of every error and refusal, and what to do"),
    "metrics.md": (metrics.text, "what Prometheus reads"),
}


def pages() -> dict[str, str]:
    """Each page as it should be now."""
    found = {name: make() for name, (make, _) in _ABOUT.items()}
    return {"README.md": page("Reference", _contents()), **found}


def write() -> None:
    """Write all of them; what is no page any more goes."""
    made = pages()
    for old in FOLDER.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, "utf-8")


def _contents() -> Iterator[str]:
    yield from prose(
        """
        Made from the code by `python -m hack.reference`, and compared with it by a test: a name
        that the code has is here.
        """
    )
    yield from table(
        ("page", ""),
        ((f"[{name.removesuffix('.md')}]({name})", about) for name, (_, about) in _ABOUT.items()),
    )
    yield "The options of the commands for people are in [cli.md](../cli.md)."
