"""`quadrant cordon NODE/GPU`: nothing new goes to a card; what runs on it stays.

The wish is written on the Node (`driver.model.names.CORDONED`); the node's plugin taints the card.
"""

import re
from collections.abc import Collection, Iterable, Sequence

import msgspec
import typer

from driver.allocator.device import PooledDevice
from driver.cli.asking import Access, ask
from driver.cli.fleet.cards import cards
from driver.cli.live.listing import Reader
from driver.cli.usage import UsageError
from driver.kube.discovery import SLICES
from driver.kube.errors import Conflict, Forbidden, KubeError, NotFound
from driver.kube.rest import Rest
from driver.model import names
from driver.model.core import Node
from driver.model.errors import QuadrantError
from driver.model.resourceslice import ResourceSlice
from driver.wire.decode import decode
from driver.wire.patch import MERGE_PATCH

# Somebody else writes the node too, its kubelet every few seconds.
_ATTEMPTS = 8
_DIGITS = re.compile(r"\d+", re.ASCII)


class CordonError(QuadrantError):
    """A node or card that does not exist."""


class _Target(msgspec.Struct, frozen=True):
    node: str
    card: str


def cordon(targets: Sequence[str], access: Access, *, driver: str, closed: bool) -> None:
    """Close these cards, or open them again; raises `QuadrantError`.

    Of several nodes, those before the one that fails are done.
    """
    by_node: dict[str, list[str]] = {}
    for target in map(_read, targets):
        by_node.setdefault(target.node, []).append(target.card)

    async def question(rest: Rest) -> None:
        for node, wanted in by_node.items():
            for line in await _change(rest, node, wanted, driver=driver, closed=closed):
                typer.echo(line)

    ask(access, question)


def _read(text: str) -> _Target:
    node, _, card = text.partition("/")
    if not node or not card or "/" in card:
        raise UsageError(f"{text!r} names no card: expected NODE/GPU, such as node-1/gpu-0")
    return _Target(node, card)


async def _change(
    rest: Rest, name: str, wanted: Sequence[str], *, driver: str, closed: bool
) -> list[str]:
    """Write until nobody else has written in between; one line for each card."""
    published = await _published(rest, name, driver)
    for _ in range(_ATTEMPTS):
        node = await _node(rest, name)
        before = listed(node)
        found = [_named(name, card, published, () if closed else before) for card in wanted]
        after = {*before, *found} if closed else set(before) - set(found)
        if after != set(before):
            try:
                await _write(rest, node, after)
            except Conflict:
                continue
        return [_told(name, card, before, closed=closed) for card in dict.fromkeys(found)]
    raise KubeError(
        f"node {name} was changed by others {_ATTEMPTS} times in a row; nothing is written, try "
        "again"
    )


def listed(node: Node) -> tuple[str, ...]:
    """The cards that a node's annotation names, in its order."""
    text = node.metadata.annotations.get(names.CORDONED, "")
    return tuple(dict.fromkeys(filter(None, (part.strip() for part in text.split(",")))))


async def _node(rest: Rest, name: str) -> Node:
    try:
        return decode(Node, await rest.get(f"/api/v1/nodes/{name}"))
    except NotFound as error:
        raise CordonError(f"node {name!r} does not exist (kubectl get nodes)") from error


async def _published(rest: Rest, node: str, driver: str) -> dict[str, str]:
    """The cards of the node under all their names: their own, and their index."""
    slices = await Reader(rest).all(SLICES, ResourceSlice)
    devices = [
        PooledDevice(one, device, can_share=True)
        for one in slices
        if one.spec.driver == driver and one.spec.node_name == node
        for device in one.spec.devices
    ]
    found: dict[str, str] = {}
    for card in cards(devices, {}):
        # A card that is published in parts only goes by the name that it has as a whole.
        name = f"gpu-{card.index}" if card.use == "mig" and card.index >= 0 else card.device
        found |= {name: name} | ({str(card.index): name} if card.index >= 0 else {})
    return found


def _named(node: str, card: str, published: dict[str, str], closed: Collection[str]) -> str:
    """The card's name; one that is closed already need not be there any more."""
    if card in published:
        return published[card]
    if card in closed:
        return card
    known = ", ".join(dict.fromkeys(sorted(published.values(), key=_natural))) or "none"
    raise CordonError(f"node {node} has no card {card!r}; its cards are: {known}")


def _natural(name: str) -> list[int | str]:
    """gpu-10 behind gpu-9."""
    return [int(number) for number in _DIGITS.findall(name)] + [name]


async def _write(rest: Rest, node: Node, cordoned: Iterable[str]) -> None:
    """Replace the annotation, if the node is still as it was read."""
    value = ",".join(sorted(cordoned, key=_natural)) or None
    metadata = {
        "resourceVersion": node.metadata.resource_version,
        "uid": node.metadata.uid,
        "annotations": {names.CORDONED: value},
    }
    path = f"/api/v1/nodes/{node.metadata.name}"
    try:
        await rest.patch(path, msgspec.json.encode({"metadata": metadata}), MERGE_PATCH)
    except Forbidden as error:
        raise CordonError(
            f"node {node.metadata.name} cannot be changed: {error}; this command needs the right "
            "to patch nodes"
        ) from error


def _told(node: str, card: str, before: Collection[str], *, closed: bool) -> str:
    word = "cordoned" if closed else "uncordoned"
    already = (card in before) == closed
    return f"node/{node} {card} {'already ' if already else ''}{word}"
