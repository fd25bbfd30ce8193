"""`quadrant doctor`: a checklist of the whole installation, from what the API server shows."""

from datetime import UTC, datetime
from importlib import metadata

import typer

from driver.cli.asking import Access, ask
from driver.cli.checkup import annotations, control, devices, rights
from driver.cli.checkup.evidence import gather
from driver.cli.checkup.finding import Checkup, checkup
from driver.cli.render import checkup as table
from driver.cli.render import screen, structured
from driver.cli.usage import expect_output
from driver.kube.rest import Rest
from driver.model.errors import QuadrantError

_OUTPUTS = ("table", "json", "yaml")
_DISTRIBUTION = "quadrant-dra"


class UnhealthyError(QuadrantError):
    """Something fails; the checklist says what."""


def doctor(access: Access, *, driver: str, output: str) -> None:
    """Print the checklist; raises `UnhealthyError` when something in it fails."""
    expect_output(output, _OUTPUTS)

    async def question(rest: Rest) -> Checkup:
        evidence = await gather(rest, driver=driver, namespace=access.namespace)
        return checkup(
            [
                *control.check(evidence, datetime.now(UTC), _own_version()),
                *devices.check(evidence),
                *annotations.check(evidence),
                *await rights.check(rest, evidence.namespace, driver),
            ]
        )

    found = ask(access, question)
    if output == "table":
        screen.lines(table.as_text(found))
    else:
        typer.echo(structured.text(found, output))
    if not found.healthy:
        failed = [one.check for one in found.findings if one.level == "fail"]
        raise UnhealthyError(f"not healthy: {', '.join(dict.fromkeys(failed))}")


def _own_version() -> str:
    try:
        return metadata.version(_DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "of a checkout"
