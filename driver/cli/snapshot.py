"""`quadrant snapshot`: a cluster's state on stdout."""

import asyncio

import msgspec
import typer

from driver.cli.live.listing import Listing, Reader
from driver.cli.live.snapshot import document
from driver.cli.render import console
from driver.kube.rest import Rest
from driver.kube.session import open_session
from driver.obs import logging


def snapshot(*, kubeconfig: str | None, context: str | None, driver: str, redact: bool) -> None:
    """Print the snapshot as JSON; raises `QuadrantError`."""
    logging.quietly()
    listing = asyncio.run(_list(kubeconfig, context, driver))
    words = console.stderr()
    for warning in listing.unreadable:
        words.print(f"warning: {warning}", markup=False)
    raw = document(listing, redact=redact)
    typer.echo(msgspec.json.format(msgspec.json.encode(raw), indent=1).decode())


async def _list(kubeconfig: str | None, context: str | None, driver: str) -> Listing:
    async with open_session(kubeconfig, context=context) as session:
        return await Reader(Rest(session)).listing(driver=driver, templates=True)
