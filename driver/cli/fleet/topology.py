"""The cards of one node and how each reaches each other, with who has them."""

import msgspec

from driver.cli.fleet.cards import cards, is_instance
from driver.cli.fleet.holders import holders
from driver.cli.fleet.links import SELF, Site, link, site
from driver.cli.fleet.nodes import State
from driver.cli.fleet.report import API_VERSION, Card
from driver.model.errors import QuadrantError


class UnknownNodeError(QuadrantError):
    """There is no such node, or it has no cards of the driver."""


class Topology(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One node: its cards, and for each pair the link, in the order of the cards."""

    api_version: str = API_VERSION
    kind: str = "Topology"
    node: str
    cards: tuple[Card, ...]
    links: tuple[tuple[str, ...], ...]

    def together(self, one: int, other: int) -> bool:
        """Whether two different cards are held by the same claim."""
        mine, theirs = self.cards[one].claims, self.cards[other].claims
        return one != other and not set(mine).isdisjoint(theirs)


def topology(state: State, name: str) -> Topology:
    """The topology of a node; raises `UnknownNodeError`."""
    node = state.nodes.get(name)
    if node is None:
        raise UnknownNodeError(
            f"node {name!r} does not exist; there are: {', '.join(sorted(state.nodes)) or 'none'}"
        )
    pools = [one for one in state.inventory.pools(node) if one.id.driver == state.driver]
    devices = [device for pool in pools for device in pool.devices]
    if not devices:
        raise UnknownNodeError(
            f"node {name!r} has no devices of {state.driver}: its node plugin has published none, "
            "or not all of its slices are there (kubectl get resourceslices)"
        )
    found = cards(devices, holders(state.claims))
    faces: dict[str, Site] = {}
    for device in devices:
        if not is_instance(device) or device.id.device not in faces:
            faces[device.id.device] = site(device.device)
    own = [faces[card.device] for card in found]
    links = tuple(
        tuple(SELF if a == b else link(one, other) for b, other in enumerate(own))
        for a, one in enumerate(own)
    )
    return Topology(node=name, cards=found, links=links)
