"""The page itself: one HTML document that loads nothing but its data."""

import base64
import hashlib
from importlib.resources import files

from driver.cli.render.page.markup import Markup, element, joined

_STYLES = (("driver.cli.render.page", "style.css"), ("driver.cli.ui", "ui.css"))
_HINT = "Point at a card, or go to one with Tab and the arrow keys, to read who has it."


def _text(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text("utf-8")


_STYLE = "".join(_text(package, name) for package, name in _STYLES)
_SCRIPT = _text("driver.cli.ui", "ui.js")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# This very script, and data from where the page is from; nothing else, whatever a name contains.
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        f"script-src {_hash(_SCRIPT)}",
        # The fill of a card is set from the script.
        "style-src 'unsafe-inline'",
        "connect-src 'self'",
        # No icon: a browser would ask for one.
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)


def page() -> str:
    """The document; it is the same for everybody."""
    head = element(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<link rel="icon" href="data:,">'),
        element("title", "Quadrant"),
        element("style", Markup(_STYLE)),
    )
    body = element(
        "body",
        element("a", "To the claims", href="#claims", class_="skip screen"),
        element(
            "header",
            element("h1", "Who has which GPU"),
            element("p", "", id="total"),
            element("p", "loading", id="fresh", class_="soft"),
        ),
        element("main", _capacity(), _cards(), _claims()),
        element("output", _HINT, id="details", aria_live="polite", class_="screen"),
        element("noscript", element("p", "The page needs JavaScript: it is live.")),
        element("script", Markup(_SCRIPT)),
    )
    return f'<!doctype html>\n<html lang="en">{head}{body}</html>\n'


def _filter(name: str, words: str) -> Markup:
    return element(
        "p",
        element("label", f"{words} ", for_=f"{name}-filter"),
        Markup(f'<input id="{name}-filter" type="search"> '),
        element("span", id=f"{name}-found", aria_live="polite"),
        class_="screen",
    )


def _capacity() -> Markup:
    names = ("model", "physical", "allocatable", "committed", "linked and free", "memory")
    head = [element("th", name, scope="col", class_="number") for name in names[1:-1]]
    first, last = (element("th", name, scope="col") for name in (names[0], names[-1]))
    key = [
        element("span", element("span", "", class_=f"key {kind}"), words)
        for kind, words in (
            ("used", "in use"),
            ("rest", "free on cards in use"),
            ("whole", "on free cards"),
            ("shut", "closed"),
        )
    ]
    table = element(
        "table",
        element("thead", element("tr", first, *head, last, element("th"))),
        element("tbody", id="models"),
        class_="capacity",
    )
    return element(
        "section",
        element("h2", "Capacity", id="capacity"),
        element("div", table, class_="scroll"),
        element("div", *key, class_="legend"),
        aria_labelledby="capacity",
    )


def _cards() -> Markup:
    table = element("table", id="grid", class_="cards", role="grid", aria_label="Cards by node")
    return element(
        "section",
        element("h2", "Cards", id="cards"),
        _legend(),
        _filter("nodes", "Show only nodes with"),
        element("div", table, class_="scroll"),
        aria_labelledby="cards",
    )


def _legend() -> Markup:
    parts = (
        ("free", "·", 0, "nothing of it is in use"),
        ("shared", "2", 60, "shared by 2 claims; filled as far as its memory is in use"),
        ("whole", "■", 100, "one claim has all of it"),
        ("mig", "▚2", 40, "divided (MIG), 2 instances in use"),
        ("free closed", "\u00d7", 0, "tainted: nothing new goes there"),
    )
    items = [
        element(
            "span",
            element("span", sign, class_=f"card {kind}", style=f"--used: {filled}%"),
            words,
        )
        for kind, sign, filled, words in parts
    ]
    items.append(element("span", "a gap in a row: another NVLink group or NUMA node"))
    return element("div", joined(*items), class_="legend")


def _claims() -> Markup:
    names = ("claim", "state", "node", "devices", "policy", "pod", "age")
    head = element("tr", *(element("th", name, scope="col") for name in names))
    body = element("tbody", id="rows")
    table = element("table", element("thead", head), body, class_="pods claims")
    return element(
        "section",
        element("h2", "Claims", id="claims"),
        _filter("claims", "Show only claims with"),
        element("div", table, class_="scroll"),
        aria_labelledby="claims",
    )
