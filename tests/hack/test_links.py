"""Links in the documentation lead somewhere."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)$", re.MULTILINE)
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
# Pages as comments, tables and messages of the code name them.
NAMED = re.compile(r"\bdocs/[\w/-]+\.md(?:#[\w-]+)?")


def pages() -> list[Path]:
    """All pages that are written for people."""
    return [
        *sorted(ROOT.glob("*.md")),
        *(
            page
            for folder in ("docs", "examples")
            for page in sorted((ROOT / folder).rglob("*.md"))
        ),
    ]


def prose(page: Path) -> str:
    """The page without its code."""
    return CODE.sub("", FENCE.sub("", page.read_text("utf-8")))


def anchors(page: Path) -> set[str]:
    """The anchors of its headings, as GitHub makes them."""
    found: dict[str, int] = {}
    made: set[str] = set()
    for heading in HEADING.findall(FENCE.sub("", page.read_text("utf-8"))):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        again = found.get(slug, 0)
        found[slug] = again + 1
        made.add(f"{slug}-{again}" if again else slug)
    return made


def links(page: Path) -> Iterator[str]:
    """Targets within the repository."""
    for match in LINK.finditer(prose(page)):
        target = match[1] or match[2]
        if not re.match(r"[a-z]+:", target):
            yield target


def fault(base: Path, target: str) -> str | None:
    """What is wrong with a link, seen from a page."""
    place, _, anchor = target.partition("#")
    page = (base.parent / place).resolve() if place else base
    if not page.exists():
        return f"{target}: there is no such file"
    if anchor and page.suffix == ".md" and anchor not in anchors(page):
        return f"{target}: the page has no such heading; it has {sorted(anchors(page))}"
    return None


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """File and heading are there."""
    assert [found for target in links(page) if (found := fault(page, target))] == []


def test_pages_that_the_code_names_are_there() -> None:
    """In sentences for users, comments and the chart."""
    top = ROOT / "README.md"
    files = [
        path
        for folder, ending in (("driver", "*.py"), ("hack", "*.py"), ("helm", "*"))
        for path in (ROOT / folder).rglob(ending)
        if path.is_file()
    ]
    found = {
        (str(path.relative_to(ROOT)), wrong)
        for path in files
        for target in NAMED.findall(path.read_text("utf-8"))
        if (wrong := fault(top, target))
    }
    assert found == set()


def test_every_page_can_be_found() -> None:
    """From the README, link by link."""
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        for target in links(page):
            place = (page.parent / target.partition("#")[0]).resolve()
            place = place / "README.md" if place.is_dir() else place
            if place.suffix == ".md" and place.is_file():
                waiting.append(place)
    assert [page for page in pages() if page not in reached] == []
