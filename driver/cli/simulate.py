"""`quadrant simulate`: from files to a report on the screen."""

from collections.abc import Sequence

import msgspec
import typer

from driver.cli import scorers
from driver.cli.pairs import pair
from driver.cli.render import comparison, console, screen, simulation, structured
from driver.cli.render.page.document import page
from driver.cli.simulation.bounds import bound, check
from driver.cli.simulation.documents import read
from driver.cli.simulation.manifests import Manifests, sort
from driver.cli.simulation.metrics import BOUNDED, bounded
from driver.cli.simulation.report import Comparison, Report
from driver.cli.simulation.run import compare
from driver.cli.simulation.run import simulate as play
from driver.cli.simulation.snapshot import served
from driver.cli.simulation.world import Rules
from driver.cli.usage import expect_output, told_by
from driver.controller.settings import ControllerSettings
from driver.simulator.releases import LATEST, Release, release

_OUTPUTS = ("table", "json", "html")


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    files: Sequence[str]
    kubernetes: str | None
    policies: Sequence[str] = ()
    fail_below: Sequence[str] = ()
    output: str = "table"
    ascii_only: bool = False


def simulate(asked: Asked) -> None:
    """Play the files and print the result.

    Raises `UsageError`, `QuadrantError` for what is wrong with the files, and `BoundError` when a
    metric is below its bound.
    """
    expect_output(asked.output, _OUTPUTS)
    registry = scorers.installed()
    with told_by("--fail-below"):
        bounds = [bound(text, BOUNDED) for text in asked.fail_below]
    with told_by("--policy"):
        policies = [pair(text, registry) for text in asked.policies]
    with told_by("--kubernetes"):
        wanted = None if asked.kubernetes is None else release(asked.kubernetes)
    manifests = sort(read(asked.files))
    rules = Rules(
        release=wanted or _served(manifests),
        defaults=ControllerSettings().defaults,
        registry=registry,
    )
    if policies:
        compared = compare(manifests, rules, policies)
        reports = compared.simulations
    else:
        reports = (play(manifests, rules),)
        compared = None
    screen.words(warning for report in reports for warning in report.warnings)
    _show(reports[0] if len(reports) == 1 or compared is None else compared, asked)
    check(bounds, ((report.policy, bounded(report.metrics)) for report in reports))


def _served(manifests: Manifests) -> Release:
    """What the snapshot says; else the latest."""
    return served(manifests.snapshots[0]) if manifests.snapshots else release(LATEST)


def _show(found: Report | Comparison, asked: Asked) -> None:
    if asked.output == "json":
        typer.echo(structured.as_json(found))
    elif asked.output == "html":
        typer.echo(page((found,) if isinstance(found, Report) else found.simulations), nl=False)
    elif isinstance(found, Report):
        simulation.as_table(found, console.stdout(), ascii_only=asked.ascii_only)
    else:
        comparison.as_table(found, console.stdout(), ascii_only=asked.ascii_only)
