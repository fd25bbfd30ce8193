"""`quadrant snapshot`: a cluster's state on stdout."""

import msgspec
import typer

from driver.cli.asking import Access, ask
from driver.cli.live.listing import Listing, Reader
from driver.cli.live.snapshot import document
from driver.cli.render import screen
from driver.kube.rest import Rest


def snapshot(access: Access, *, driver: str, redact: bool) -> None:
    """Print the snapshot as JSON; raises `QuadrantError`."""

    async def question(rest: Rest) -> Listing:
        return await Reader(rest).listing(driver=driver, templates=True)

    listing = ask(access, question)
    screen.words(listing.unreadable)
    raw = document(listing, redact=redact)
    typer.echo(msgspec.json.format(msgspec.json.encode(raw), indent=1).decode())
