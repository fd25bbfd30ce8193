"""`quadrant migrate`: manifests of HAMi and of device plugins, rewritten with claims."""

from collections.abc import Iterable, Sequence
from functools import partial

import msgspec
import typer

from driver.cli import scorers
from driver.cli.migration.conversion import Rules, convert
from driver.cli.migration.files import Rewritten, rewrite
from driver.cli.render import console
from driver.cli.simulation.documents import Document, ManifestError, read, texts
from driver.cli.simulation.inventory import machines
from driver.cli.simulation.manifests import sort
from driver.cli.usage import expect_output, told_by
from driver.controller.cards import Card, cards
from driver.model.errors import QuadrantError
from driver.model.names import DRIVER
from driver.simulator.releases import LATEST, release

_OUTPUTS = ("diff", "yaml")


class RefusedError(QuadrantError):
    """Objects that could not be rewritten; each is named on stderr."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for; `inventory` are files that say which cards there are."""

    files: Sequence[str]
    inventory: Sequence[str] = ()
    kubernetes: str | None = None
    device_class: str = DRIVER
    output: str = "diff"


def migrate(asked: Asked) -> None:
    """Print the manifests rewritten; raises `QuadrantError`, also when an object is refused."""
    expect_output(asked.output, _OUTPUTS)
    with told_by("--kubernetes"):
        serves = release(asked.kubernetes or LATEST)
    rules = Rules(
        release=serves,
        registry=scorers.installed(),
        device_class=asked.device_class,
        cards=_cards(asked.inventory),
    )
    found = [
        rewrite(name, text, partial(convert, rules=rules))
        for path in asked.files
        for name, text in texts(path)
    ]
    _show(found, asked.output)
    _tell(found)


def _cards(files: Sequence[str]) -> frozenset[Card]:
    """The kinds of cards in inventories, snapshots and slices: what a percentage is a part of."""
    if not files:
        return frozenset()
    documents = [one for one in read(files) if _says_cards(one)]
    if not documents:
        raise ManifestError(
            f"{', '.join(files)}: no cards are in it; expected an Inventory, a snapshot (quadrant "
            "snapshot) or ResourceSlices"
        )
    return cards(machines(sort(documents), DRIVER).slices, DRIVER)


def _says_cards(document: Document) -> bool:
    return document.kind in ("Inventory", "Snapshot", "Node", "ResourceSlice")


def _show(found: Iterable[Rewritten], output: str) -> None:
    if output == "diff":
        for one in found:
            typer.echo(one.diff(), nl=False)
        return
    parts = [one.after if one.after.endswith("\n") else f"{one.after}\n" for one in found]
    typer.echo("---\n".join(parts), nl=False)


def _tell(found: Sequence[Rewritten]) -> None:
    words = console.stderr()
    for one in found:
        for said in one.said:
            words.print(f"{one.name}: {said.about}: {said.sentence}", markup=False)
    refused = [said.about for one in found for said in one.said if said.refused]
    if refused:
        raise RefusedError(f"not rewritten: {', '.join(refused)}; the reasons are above")
    if all(one.before == one.after for one in found):
        words.print("nothing to rewrite: no object asks for cards by a resource name")
