"""Which commands do the pages show? What they mean, and how they are run, it does not know.

Read are blocks of shell (`sh`, `bash`, `console`) and what stands between single backticks in a
sentence, where it begins with the name of a program. A command goes over as many lines as its
backslashes or its here-document say; a comment may name another way of the same ("# or: ...").
"""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = frozenset(
    {
        *("kubectl", "quadrant", "helm", "docker", "buildah", "ctr", "nvidia-smi", "curl"),
        *("make", "pip", "pipx", "uvx", "python", ".venv/bin/python", "git", "go"),
    }
)

# Written by hack/reference from the program itself, and compared with it.
_GENERATED = "<!-- from here on: .venv/bin/python -m hack.reference"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SHELLS = frozenset({"sh", "bash", "console"})
_PROMPT = "$ "
_PLUGIN = "kubectl quadrant "
_OR = "or: "
_COMMENT = re.compile(r"(?:^|\s+)#\s+(.*)$")
_INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_LINE = re.compile(r".*<<'?(?P<end>\w+)'?\n(?:.*\n)*?(?P=end)$|.+$", re.MULTILINE)
_MORE = "\\\n"


class Command(msgspec.Struct, frozen=True):
    """One command as it stands on a page; `shown` is the output below it, if the page has any.

    `kubectl quadrant` is `quadrant`: one program under two names, of which `name` is the shorter.
    """

    text: str
    page: str
    shown: str = ""
    inline: bool = False

    @property
    def name(self) -> str:
        """The same for calls of the same."""
        return short(self.text)


def short(text: str) -> str:
    """The command without the program that only calls ours."""
    return text.removeprefix("kubectl ") if text.startswith(_PLUGIN) else text


def pages() -> Iterator[Path]:
    """All that people read."""
    yield from (ROOT / "README.md", ROOT / "CONTRIBUTING.md")
    for folder in ("docs", "examples"):
        yield from sorted((ROOT / folder).rglob("*.md"))
    yield ROOT / "helm" / "quadrant" / "templates" / "NOTES.txt"


def commands() -> tuple[Command, ...]:
    """Every command of every page, in order."""
    return tuple(one for page in pages() for one in of(page))


def of(page: Path) -> Iterator[Command]:
    """The commands of one page: those of blocks first."""
    name, text = str(page.relative_to(ROOT)), page.read_text("utf-8")
    if page.suffix == ".txt":
        yield from _of_notes(text, name)
        return
    text = text.partition(_GENERATED)[0]
    for language, block in BLOCK.findall(text):
        if language == "console":
            yield from _of_console(block.replace(_MORE, " "), name)
        elif language in _SHELLS:
            for found in _LINE.finditer(block.replace(_MORE, " ")):
                yield from _of_line(found[0], name)
    for paragraph in BLOCK.sub("\n", text).split("\n\n"):
        for span in _INLINE.findall(paragraph):
            line = " ".join(span.replace("\\|", "|").split())
            if " " in line and _is_program(line):
                yield Command(line, name, inline=True)


def _of_console(block: str, page: str) -> Iterator[Command]:
    """Lines after a prompt are commands, those below them what they print."""
    for part in re.split(rf"^{re.escape(_PROMPT)}", block, flags=re.MULTILINE)[1:]:
        line, _, shown = part.partition("\n")
        first, *others = _of_line(line, page)
        yield msgspec.structs.replace(first, shown=shown.strip("\n"))
        yield from others


def _of_line(line: str, page: str) -> Iterator[Command]:
    """One command, with those that its comment offers in its place."""
    if "\n" in line:
        yield Command(line, page)
        return
    comment = _COMMENT.search(line)
    text = " ".join(_COMMENT.sub("", line).split())
    if text:
        yield Command(text, page)
    if comment and comment[1].startswith(_OR):
        yield Command(comment[1].removeprefix(_OR), page)


def _of_notes(text: str, page: str) -> Iterator[Command]:
    """What Helm prints after an installation: commands are indented."""
    for line in text.replace("{{ .Release.Namespace }}", "quadrant-system").splitlines():
        if line.startswith("  ") and _is_program(line.strip()):
            yield Command(line.strip(), page)


def _is_program(line: str) -> bool:
    program = line.partition(" ")[0]
    return program in PROGRAMS or program.removeprefix("./").startswith("hack/")
