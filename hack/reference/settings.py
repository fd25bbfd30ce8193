"""docs/reference/settings.md: what both processes can be told, and how."""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Literal, cast, get_args, get_origin

import msgspec
import typer.core
import typer.main

from driver.cli import node, processes
from driver.controller.policies import Defaults
from driver.controller.settings import ControllerSettings
from driver.node.settings import NodeSettings
from hack.reference import chart
from hack.reference.markdown import code, page, prose, table

_HEAD = ("setting", "type", "default", "option", "chart value", "meaning")
# Parameters of the controller's command line that fill in a part of a setting.
_PARTS = {
    "node_policy": "defaults.node",
    "gpu_policy": "defaults.gpu",
    "scoring_weights": "defaults.weights",
    "hami_resource": "resources",
    "webhook_address": "webhook_addresses",
}
# Values whose name is not the place where the template reads them.
_BESIDE = {"--mps-dir": "node.mps.enabled"}


class _Option(msgspec.Struct, frozen=True):
    names: str
    variable: str = ""


def text() -> str:
    """The page."""
    return page("Settings", _lines())


def _lines() -> Iterator[str]:
    yield from prose(
        """
        Both processes are told what to do by their command line alone; the chart fills it in.
        An option or a value of the chart that does not exist is refused. Where no value of the
        chart is named, the chart has the option's default, or what stands there.
        """
    )
    yield ""
    yield "## The controller"
    yield ""
    yield "`quadrant controller`; [install](../install.md) has the whole of it."
    yield from table(_HEAD, _controller())
    yield "## The node plugin"
    yield ""
    yield "`quadrant node`; see [node-plugin.md](../node-plugin.md)."
    yield from table(_HEAD, _node())
    yield from prose(
        """
        Both have `--log-level` (chart: `logLevel`): debug, info (the default), warning or
        error. Spans are sent where `OTEL_EXPORTER_OTLP_ENDPOINT` says (chart:
        `tracing.endpoint`).
        """
    )
    yield ""
    yield from prose(
        """
        `quadrant mps`, the keeper of MPS daemons, has `--mps-dir` (the same folder as the
        plugin's) and `--log-level`.
        """
    )
    yield ""
    yield "## All values of the chart"
    yield ""
    yield from prose(
        """
        `helm/quadrant/values.yaml`. What is said of one value may go for those that follow it.
        """
    )
    yield from table(
        ("value", "default", "meaning"),
        ((code(one.path), code(one.default.replace('""', "")), one.comment)
         for one in chart.values()),
    )  # fmt: skip


def _controller() -> Iterator[tuple[str, ...]]:
    command = cast("typer.core.TyperGroup", typer.main.get_command(processes.app))
    found = {
        _PARTS.get(param.name or "", param.name or ""): _Option(
            ", ".join(map(code, param.opts)), str(getattr(param, "envvar", None) or "")
        )
        for param in getattr(command, "commands", {"controller": command})["controller"].params
    }
    return _rows(ControllerSettings, found, chart.options("controller.yaml"))


def _node() -> Iterator[tuple[str, ...]]:
    found = {
        one.dest: _Option(
            ", ".join(map(code, one.option_strings)), node.VARIABLES.get(one.dest, "")
        )
        for one in node.options()._actions  # noqa: SLF001 # argparse shows them in no other way
    }
    return _rows(NodeSettings, found, chart.options("node.yaml") | _BESIDE)


def _rows(
    settings: type[msgspec.Struct], options: Mapping[str, _Option], values: Mapping[str, str]
) -> Iterator[tuple[str, ...]]:
    for name, kind, default, comment in _fields(settings):
        option = options.get(name)
        first = option.names.partition(",")[0].strip("`") if option else ""
        yield (
            code(".".join(map(_camel, name.split(".")))),
            kind,
            code(default),
            _told(option),
            _set_by(values.get(first, "")),
            comment,
        )


def _set_by(value: str) -> str:
    start, word, rest = value.partition("always ")
    return f"{word}{code(rest)}" if not start and word else code(value)


def _told(option: _Option | None) -> str:
    if option is None:
        return "none"
    return option.names + (f", else `${option.variable}`" if option.variable else "")


def _fields(settings: type[msgspec.Struct]) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, default and comment of every setting; of a group, those of its members."""
    said = comments(settings)
    for field in msgspec.structs.fields(settings):
        if isinstance(field.default, Defaults):
            for part in msgspec.structs.fields(Defaults):
                value = getattr(field.default, part.name)
                yield f"{field.name}.{part.name}", "text", value, said[field.name]
            continue
        default = "" if field.required else _shown(field.default)
        yield field.name, _kind(field.type, required=field.required), default, said[field.name]


def comments(settings: type) -> dict[str, str]:
    """What is said above each field in the source; a field without goes with the one before."""
    source = inspect.getsource(settings)
    lines = source.splitlines()
    body = cast("ast.ClassDef", ast.parse(source).body[0]).body
    found: dict[str, str] = {}
    last = ""
    for item in body:
        if isinstance(item, ast.AnnAssign):
            last = _above(lines, item.lineno - 1) or last
            found[cast("ast.Name", item.target).id] = last
    return found


def _above(lines: list[str], number: int) -> str:
    found: list[str] = []
    while lines[number - 1].strip().startswith("#"):
        number -= 1
        found.insert(0, lines[number].strip().removeprefix("#").strip())
    return re.sub(r"`([a-z]+(?:_[a-z]+)+)`", lambda match: code(_camel(match[1])), " ".join(found))


def _kind(kind: object, *, required: bool) -> str:
    return _word(kind) + (", must be given" if required else "")


def _word(kind: object) -> str:
    """A type in words, with the bounds that it sets."""
    inner = get_args(kind)
    if get_origin(kind) is tuple:
        return f"{_word(inner[0]).partition(' ')[0]}s"
    if get_origin(kind) is Literal:
        return " or ".join(map(code, inner))
    if get_origin(kind) is Annotated:
        bounds = next(one for one in inner if isinstance(one, msgspec.Meta))
        return f"number from {bounds.ge}" + (f" to {bounds.le}" if bounds.le is not None else "")
    words = {bool: "yes or no", int: "number", str: "text"}
    return words.get(cast("type", kind), "text" if str in inner else "names")


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return "" if value is None or isinstance(value, msgspec.Struct) else str(value)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def unmapped() -> Iterable[str]:
    """Options of the chart that no setting has: a name that has changed on one side only."""
    for template, rows in (("controller.yaml", _controller()), ("node.yaml", _node())):
        told = " ".join(row[3] for row in rows) + " `--log-level`"
        yield from (name for name in chart.options(template) if f"`{name}`" not in told)
