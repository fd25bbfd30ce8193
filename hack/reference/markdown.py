"""Tables and links of the pages, in Markdown."""

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence

# As comments and tables of the code name a page: docs/policies.md, docs/health.md#try-it.
_PAGE = re.compile(r"docs/([\w/-]+)\.md(#[\w-]+)?")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table, with an empty line before and after."""
    yield ""
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(_cell(text) for text in row)} |"
    yield ""


def code(text: object) -> str:
    """As code; nothing for nothing."""
    return f"`{text}`" if str(text) else ""


def linked(text: str) -> str:
    """Pages that are named become links, from a page of docs/reference."""
    return _PAGE.sub(_link, text)


def prose(text: str) -> Iterator[str]:
    """A paragraph that is written over several lines of the source."""
    yield from inspect.cleandoc(text).splitlines()


def page(title: str, lines: Iterable[str]) -> str:
    """A page with this title."""
    text = "\n".join([f"# {title}", "", *lines])
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def _cell(text: str) -> str:
    return " ".join(linked(text).split()).replace("|", "\\|")


def _link(match: re.Match[str]) -> str:
    name, anchor = match[1], match[2] or ""
    if name.startswith("reference/"):
        name = name.removeprefix("reference/")
        return f"[{name}]({name}.md{anchor})"
    return f"[{name.rpartition('/')[2]}](../{name}.md{anchor})"
