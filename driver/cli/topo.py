"""`quadrant topo NODE`: how the cards of one node reach each other."""

import typer

from driver.cli.asking import Access, ask
from driver.cli.fleet.look import Wanted, look
from driver.cli.fleet.topology import Topology, topology
from driver.cli.render import screen, structured
from driver.cli.render import topology as table
from driver.cli.usage import expect_output
from driver.kube.rest import Rest

_OUTPUTS = ("table", "json", "yaml")


def topo(node: str, access: Access, *, driver: str, output: str) -> None:
    """Show the node's matrix; raises `QuadrantError`."""
    expect_output(output, _OUTPUTS)

    async def question(rest: Rest) -> tuple[Topology, tuple[str, ...]]:
        found = await look(rest, Wanted(driver=driver))
        return topology(found.state, node), found.missing

    shown, missing = ask(access, question)
    screen.words(missing)
    if output == "table":
        screen.lines(table.as_text(shown))
    else:
        typer.echo(structured.text(shown, output))
