"""`quadrant matrix`: nodes and their cards as a picture."""

from collections.abc import Awaitable, Callable

import msgspec
import typer

from driver.cli.asking import Access, ask, follow
from driver.cli.fleet.look import Look, Wanted, look
from driver.cli.fleet.nodes import matrix as picture
from driver.cli.fleet.report import Matrix
from driver.cli.render import fleet, screen, structured
from driver.cli.render.matrix import ASCII, UNICODE
from driver.cli.usage import expect_output
from driver.kube.rest import Rest

_OUTPUTS = ("table", "wide", "json", "yaml")


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for; `nodes` is a label selector."""

    driver: str
    nodes: str = ""
    group_by: str = ""
    output: str = "table"
    ascii_only: bool = False
    watch: bool = False


def matrix(asked: Asked, access: Access) -> None:
    """Show the cluster's cards; raises `QuadrantError`."""
    expect_output(asked.output, _OUTPUTS)
    question = _question(asked)
    if asked.watch:
        follow(access, question, lambda found: _show(found, asked, again=True))
    else:
        _show(ask(access, question), asked, again=False)


def _question(asked: Asked) -> Callable[[Rest], Awaitable[tuple[Matrix, tuple[str, ...]]]]:
    async def question(rest: Rest) -> tuple[Matrix, tuple[str, ...]]:
        found: Look = await look(rest, Wanted(driver=asked.driver, nodes=asked.nodes))
        return picture(found.state, group_by=asked.group_by), found.missing

    return question


def _show(found: tuple[Matrix, tuple[str, ...]], asked: Asked, *, again: bool) -> None:
    shown, missing = found
    screen.words(missing)
    if asked.output in ("json", "yaml"):
        typer.echo(structured.text(shown, asked.output))
    else:
        signs = ASCII if asked.ascii_only else UNICODE
        screen.lines(fleet.as_text(shown, signs, wide=asked.output == "wide"), again=again)
