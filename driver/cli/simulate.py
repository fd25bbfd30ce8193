"""`quadrant simulate`: from files to a report on the screen."""

from collections.abc import Iterable, Sequence

import msgspec
import typer

from driver.cli import scorers
from driver.cli.render import comparison, console, simulation
from driver.cli.render.page.document import page
from driver.cli.simulation import metrics
from driver.cli.simulation.documents import read
from driver.cli.simulation.manifests import Manifests, sort
from driver.cli.simulation.report import Comparison, Report
from driver.cli.simulation.run import compare
from driver.cli.simulation.run import simulate as play
from driver.cli.simulation.snapshot import served
from driver.cli.simulation.world import Rules
from driver.controller.policies import Defaults
from driver.controller.settings import ControllerSettings
from driver.model.errors import QuadrantError
from driver.policy.registry import Registry
from driver.simulator.releases import LATEST, Release, release

_OUTPUTS = ("table", "json", "html")


class PairError(QuadrantError):
    """A pair of policies that cannot be read."""


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

    Raises `QuadrantError` for what is wrong with them, and when a metric is below its bound.
    """
    if asked.output not in _OUTPUTS:
        raise typer.BadParameter(
            f"{asked.output!r}: expected {', '.join(_OUTPUTS)}", param_hint="-o"
        )
    registry = scorers.installed()
    bounds = [metrics.bound(text) for text in asked.fail_below]
    policies = [pair(text, registry) for text in asked.policies]
    manifests = sort(read(asked.files))
    rules = Rules(
        release=_release(asked.kubernetes, manifests),
        defaults=ControllerSettings().defaults,
        registry=registry,
    )
    if policies:
        compared = compare(manifests, rules, policies)
        reports = compared.simulations
    else:
        reports = (play(manifests, rules),)
        compared = None
    _warn(reports)
    _show(reports[0] if len(reports) == 1 or compared is None else compared, asked)
    metrics.check(bounds, ((report.policy, report.metrics) for report in reports))


def _release(asked: str | None, manifests: Manifests) -> Release:
    """What is asked for; else what the snapshot says; else the latest."""
    if asked is None and manifests.snapshots:
        return served(manifests.snapshots[0])
    return release(asked or LATEST)


def pair(text: str, registry: Registry) -> Defaults:
    """Read NODE/GPU; raises `PairError`, or `PolicyError` for a name that is not known."""
    node, slash, gpu = (part.strip() for part in text.partition("/"))
    if not (node and slash and gpu):
        raise PairError(
            f"policy {text!r} cannot be read: expected NODE/GPU, such as compact/spread, where "
            "each may be several names joined by commas"
        )
    registry.node_scorer(node)
    registry.objective(gpu)
    return Defaults(node=node, gpu=gpu)


def _warn(reports: Iterable[Report]) -> None:
    words = console.stderr()
    for warning in dict.fromkeys(one for report in reports for one in report.warnings):
        words.print(f"warning: {warning}", markup=False)


def _show(found: Report | Comparison, asked: Asked) -> None:
    if asked.output == "json":
        typer.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    elif asked.output == "html":
        typer.echo(page((found,) if isinstance(found, Report) else found.simulations), nl=False)
    elif isinstance(found, Report):
        simulation.as_table(found, console.stdout(), ascii_only=asked.ascii_only)
    else:
        comparison.as_table(found, console.stdout(), ascii_only=asked.ascii_only)
