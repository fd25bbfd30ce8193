"""Every command that the documentation shows is run, here or by a test that the book names."""

import ast
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
import typer.main

from driver.cli.main import app
from tests.docs import book
from tests.docs.commands import ROOT, Command, commands, short
from tests.docs.shell import fault, lay

_TABLES: tuple[Mapping[str, object], ...] = (
    book.OFFLINE, book.SLOW, book.SITE, book.CHART, book.ELSEWHERE, book.EXCUSED,
    dict.fromkeys(book.NAMED),
)  # fmt: skip
_WORDS = re.compile(r"\S+( [a-z-]+)+")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the commands are typed."""
    return lay(tmp_path_factory.mktemp("desk"))


def test_every_command_stands_in_one_table() -> None:
    """Whoever writes a command into the documentation says how it is run."""
    shown = {one.name: one for one in commands() if not _mentioned(one)}
    tables = Counter(short(text) for table in _TABLES for text in table)
    unknown = [f"{one.page}: {one.text}" for name, one in shown.items() if name not in tables]
    gone = [text for text in tables if text not in shown]
    twice = [text for text, count in tables.items() if count > 1]
    assert not unknown, "\n".join(
        ["in no table of tests/docs/book.py, best one that runs", *unknown]
    )
    assert not gone, "\n".join(["on no page any more: take it out of tests/docs/book.py", *gone])
    assert not twice, "\n".join(["in two tables of tests/docs/book.py", *twice])


def _mentioned(one: Command) -> bool:
    """Words in a sentence that name a program's command, not something to type."""
    written = any(one.name in map(short, table) for table in _TABLES)
    return one.inline and not written and _WORDS.fullmatch(one.text) is not None


def test_what_is_named_exists() -> None:
    """Commands and options of ours that a sentence names, scripts and targets of make."""
    names = [
        one.text for one in commands() if _mentioned(one) or one.name in map(short, book.NAMED)
    ]
    assert names
    unknown = [unlike for name in names if (unlike := _unknown(name.split()))]
    assert not unknown, "\n".join(unknown)


def _unknown(words: list[str]) -> str:
    program, *rest = words[1:] if words[:2] == ["kubectl", "quadrant"] else words
    if program.removeprefix("./").startswith("hack/"):
        return "" if (ROOT / program).is_file() else f"{program} is not there"
    if program == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        return "" if set(rest) <= set(targets) else f"make has no {rest}"
    if program != "quadrant":
        return ""
    group = typer.main.get_command(app)
    known = getattr(group, "commands", {})
    command = known.get(rest[0]) if rest and not rest[0].startswith("-") else group
    if command is None:
        return f"quadrant has no {rest[0]}"
    options = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    return ", ".join(
        f"{' '.join(words)}: no {word}"
        for word in rest
        if word.startswith("-") and word not in options and command.add_help_option
    )


@pytest.mark.parametrize("place", sorted(set(book.ELSEWHERE.values())))
def test_the_tests_that_the_book_names_exist(place: str) -> None:
    """A test that is renamed takes its entries with it."""
    file, _, name = place.partition("::")
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    assert name in {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


@pytest.mark.parametrize("text", book.OFFLINE)
def test_commands_without_a_cluster(desk: Path, text: str) -> None:
    """As they stand on the page, with the output that it shows."""
    wrong = fault(text, book.OFFLINE[text], desk)
    assert not wrong, wrong
