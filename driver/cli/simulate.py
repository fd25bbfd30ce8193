"""`quadrant simulate`: from files to a report on the screen."""

from collections.abc import Sequence

import typer

from driver.cli.render import console, simulation
from driver.cli.simulation.documents import read
from driver.cli.simulation.manifests import sort
from driver.cli.simulation.run import simulate as play
from driver.cli.simulation.world import Rules
from driver.controller.settings import ControllerSettings
from driver.simulator.releases import release

_OUTPUTS = ("table", "json")


def simulate(files: Sequence[str], *, kubernetes: str, output: str, ascii_only: bool) -> None:
    """Play the files and print the result; raises `QuadrantError` for what is wrong with them."""
    if output not in _OUTPUTS:
        raise typer.BadParameter(f"{output!r}: expected {' or '.join(_OUTPUTS)}", param_hint="-o")
    rules = Rules(release=release(kubernetes), defaults=ControllerSettings().defaults)
    report = play(sort(read(files)), rules)
    words = console.stderr()
    for warning in report.warnings:
        words.print(f"warning: {warning}", markup=False)
    if output == "json":
        typer.echo(simulation.as_json(report))
    else:
        simulation.as_table(report, console.stdout(), ascii_only=ascii_only)
