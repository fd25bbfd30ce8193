"""The reference in docs/cli.md, from the options that the program itself has."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import typer
import typer.core
import typer.main

from driver.cli.main import app

FILE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
BEGIN = "<!-- from here on: .venv/bin/python -m hack.reference -->\n"

# Their options are those of a process; docs/install.md and docs/node-plugin.md describe them.
_PROCESSES = frozenset({"controller", "node", "mps"})
_EVERYWHERE = frozenset({"help", "install_completion", "show_completion"})


def reference() -> str:
    """Markdown: a section for each command, with a table of its options."""
    group = cast("typer.core.TyperGroup", typer.main.get_command(app))
    parts = [
        "\n".join(_command(name, group.commands[name]))
        for name in sorted(group.commands)
        if name not in _PROCESSES and not group.commands[name].hidden
    ]
    return "\n\n".join(parts) + "\n"


def _command(name: str, command: object) -> Iterator[str]:
    params = getattr(command, "params", [])
    arguments = [one for one in params if one.param_type_name == "argument"]
    options = [one for one in params if one.param_type_name == "option"]
    words = " ".join(map(_argument, arguments))
    yield f"### {name}"
    yield ""
    yield f"`kubectl quadrant {name}{' ' if words else ''}{words}`: {_summary(command)}"
    rows = [
        *((f"`{_argument(one)}`", getattr(one, "help", "") or "", "") for one in arguments),
        *(_option(one) for one in options if one.name not in _EVERYWHERE and not one.hidden),
    ]
    if rows:
        yield ""
        yield "| option | | default |"
        yield "|---|---|---|"
        yield from (f"| {left} | {middle} | {right} |" for left, middle, right in rows)


def _argument(one: object) -> str:
    name = str(getattr(one, "name", "")).upper().removesuffix("S")
    return f"{name}..." if getattr(one, "nargs", 1) == -1 else name


def _summary(command: object) -> str:
    text = str(getattr(command, "help", "") or "")
    first = text.split("\n\n", maxsplit=1)[0]
    return " ".join(first.split())


def _option(option: object) -> tuple[str, str, str]:
    names = ", ".join(f"`{name}`" for name in getattr(option, "opts", []))
    default = getattr(option, "default", None)
    shown = "" if default in (None, "", False) or default == [] else f"`{default}`"
    words = str(getattr(option, "help", "") or "").replace("|", "\\|")
    return names, words, shown


def written(text: str) -> str:
    """The file with the reference as it is now."""
    head, mark, _ = text.partition(BEGIN)
    return f"{head}{mark}\n{reference()}"
