"""Elements of SVG as text. Knows shapes and classes; what they mean is the figure's business."""

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

# Readable on light and dark pages: the picture brings its own paper.
STYLE = """
svg { --ink: #1b1f24; --paper: #ffffff; --soft: #57606a; --line: #8c959f; --wash: #eef1f4;
  --share: #e0a030; --whole: #2f6db3; --good: #1a7f37; --bad: #b4005a;
  font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }
@media (prefers-color-scheme: dark) {
  svg { --ink: #e6edf3; --paper: #12161b; --soft: #9aa5b1; --line: #5b6570; --wash: #222933;
    --share: #8f5f0e; --whole: #3f82cc; --good: #4cc26b; --bad: #ff7ab8; }
}
text { fill: var(--ink); font-size: 13px; }
.paper { fill: var(--paper); }
.title { font-size: 21px; font-weight: 650; }
.head { font-size: 16px; font-weight: 650; }
.soft { fill: var(--soft); }
.small { font-size: 12px; }
.middle { text-anchor: middle; }
.end { text-anchor: end; }
.number { font-size: 34px; font-weight: 700; }
.strong { font-weight: 650; }
.good { fill: var(--good); }
.bad { fill: var(--bad); }
.free { fill: none; stroke: var(--line); stroke-dasharray: 2 3; }
.card { fill: var(--wash); stroke: var(--line); }
.share { fill: var(--share); }
.whole { fill: var(--whole); }
.letter { font-size: 13px; font-weight: 650; text-anchor: middle; fill: #fff; }
.count { font-size: 12px; font-weight: 650; text-anchor: middle; }
.room { fill: none; stroke: var(--good); stroke-width: 2; }
.axis { stroke: var(--line); stroke-width: 1; fill: none; }
.line { fill: none; stroke-width: 2.5; stroke-linejoin: round; }
.line.good { stroke: var(--good); }
.line.bad { stroke: var(--bad); }
.grid { stroke: var(--wash); }
"""


def element(name: str, *content: str, **attributes: str | float) -> str:
    """One element; a trailing underscore of a name is dropped, other ones become dashes."""
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}={quoteattr(_text(value))}"
        for key, value in attributes.items()
    )
    return f"<{name}{written}>{''.join(content)}</{name}>" if content else f"<{name}{written}/>"


def text(x: float, y: float, words: str, class_: str = "") -> str:
    """A line of text; y is its baseline."""
    return element("text", escape(words), x=x, y=y, **({"class_": class_} if class_ else {}))


# Its left upper corner, its width and its height.
Area = tuple[float, float, float, float]


def box(area: Area, class_: str, *, round_: float = 3) -> str:
    """A rectangle with round corners."""
    x, y, width, height = area
    return element("rect", x=x, y=y, width=width, height=height, rx=round_, class_=class_)


def path(points: Iterable[tuple[float, float]], class_: str) -> str:
    """Straight lines from point to point."""
    drawn = "L".join(f"{_text(x)} {_text(y)}" for x, y in points)
    return element("path", d=f"M{drawn}", class_=class_)


def document(size: tuple[int, int], parts: Iterable[str], *, title: str, described: str) -> str:
    """The picture, with what those are told who do not see it."""
    width, height = size
    drawn = element(
        "svg",
        "\n",
        element("title", escape(title)),
        "\n",
        element("desc", escape(described)),
        element("style", STYLE),
        "\n",
        box((0, 0, width, height), "paper", round_=10),
        "\n",
        "\n".join(parts),
        "\n",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
    )
    return drawn + "\n"


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else f"{round(value, 2):g}"
