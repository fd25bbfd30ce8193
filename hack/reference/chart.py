"""The chart, read as text: its values with their comments, and which value sets which option."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

CHART = Path(__file__).resolve().parents[2] / "helm" / "quadrant"
_VALUE = re.compile(r"\.Values\.([\w.]+)")
_OPTION = re.compile(r"- --(?:\{\{.*?\}\}.*?\{\{.*?\}\})?([a-z-]+)(=?)")
_KEY = re.compile(r"( *)([A-Za-z]\w*):(?: (.*))?")


class Value(msgspec.Struct, frozen=True):
    """A value of the chart: its default as it is written, and what is said of it."""

    path: str
    default: str
    comment: str


def options(template: str) -> dict[str, str]:
    """By option, the value that sets it; of options without one, what the chart gives always.

    Where a value stands in an `if`, `with` or `range` around the option, it is that one.
    """
    found: dict[str, str] = {}
    around: list[str] = []
    for line in _arguments(template):
        opened = re.search(r"\{\{-? *(?:if|with|range) (.*?)\}\}", line)
        option = _OPTION.search(line)
        if option is None:
            if opened:
                around.append(_first(opened[1]))
            elif re.search(r"\{\{-? *end", line):
                around.pop()
            continue
        inner = _first(line) or next((one for one in reversed(around) if one), "")
        name, given = f"--{option[1]}", line.strip().partition("=")[2]
        before = f"{found[name]}, " if name in found else "always "
        found[name] = inner or f"{before}{given}"
    return found


def _arguments(template: str) -> Iterator[str]:
    text = (CHART / "templates" / template).read_text("utf-8")
    after = text.partition("args:\n")[2]
    return iter(re.split(r"\n +(?:env|ports):\n", after)[0].splitlines())


def _first(text: str) -> str:
    match = _VALUE.search(text)
    return match[1] if match else ""


def refusals() -> list[str]:
    """The sentences with which an install or an upgrade is refused."""
    text = "".join(path.read_text("utf-8") for path in sorted((CHART / "templates").iterdir()))
    found = re.findall(r'fail (?:\(printf )?"(.*?)"[ )}]', text)
    return [re.sub(r"%[sd]", "…", one) for one in found]


def policies() -> list[str]:
    """The sentences of the admission policies, which the API server says."""
    text = (CHART / "templates" / "admission-policies.yaml").read_text("utf-8")
    fixed = re.findall(r"message: (.*)", text)
    composed = [
        re.sub(r'"\s*\+ .*? \+\s*"', "…", one).strip('"')
        for one in re.findall(r"messageExpression: '(.*)'", text)
    ]
    return sorted(re.sub(r"{{.*?}}", "…", one) for one in (*fixed, *composed))


def values() -> Iterator[Value]:
    """All values that have a default of their own, in order, with the comment above them."""
    path: list[str] = []
    comments: list[str] = []
    lines = (CHART / "values.yaml").read_text("utf-8").splitlines()
    for number, line in enumerate(lines):
        if line.strip().startswith("#"):
            comments.append(_said(line))
            continue
        match = _KEY.fullmatch(line)
        if match is None:
            if not line.strip():
                comments = []
            continue
        depth = len(match[1]) // 2
        path[depth:] = [match[2]]
        default = match[3] or _listed(lines[number + 1 :], depth)
        if default is None:
            # A group: what is said of it goes with its first value.
            continue
        yield Value(".".join(path), default, " ".join(comments))
        comments = []


def _said(line: str) -> str:
    """A line of a comment; what is indented, or a list's item, is an example."""
    text = line.strip().removeprefix("#").removeprefix(" ")
    return f"`{text.strip()}`" if text.startswith(("- ", "  ")) else text


def _listed(rest: list[str], depth: int) -> str | None:
    """A list below a key, as one line; None where the key has members."""
    items = []
    for line in rest:
        match = re.fullmatch(rf"{'  ' * (depth + 1)}- (.*)", line)
        if match is None:
            break
        items.append(match[1])
    return f"[{', '.join(items)}]" if items else None
