"""What this node offers of its cards: whole ones, shares, and parts, and how each is published.

Pure. A card is offered in one way at a time: a part that a claim has is never withdrawn, and what
somebody else has cut a card into is offered as it is.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec
from msgspec import structs

from driver.model.resourceslice import Device, DeviceAttribute
from driver.node.card import Card
from driver.node.device import device, device_name
from driver.node.held import Partition, PreparedClaim
from driver.node.sharing.partitions import (
    MigMode,
    Offer,
    draws_all,
    is_cut_up,
    offers,
    part,
)

# What keeps a container within its share of a card, published of cards that can be shared.
LIMITS = "limits"
ADVISORY = "advisory"
BY_HAMI_CORE = "hami-core"


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """All that this node offers."""

    # In the order of their index; those that are cut up are not offered whole.
    cards: tuple[Card, ...]
    modes: Mapping[str, MigMode]
    parts: Mapping[str, Offer]
    shareable: bool
    # What keeps limits of shares where MPS does not.
    limits: str

    def uuids(self) -> tuple[str, ...]:
        """Of all cards, and of the parts that are there."""
        parts = tuple(one.uuid for one in self.parts.values() if one.uuid)
        return (*(card.uuid for card in self.cards if card.uuid), *parts)

    def cuts_cards(self) -> bool:
        """Whether cards are cut into parts as claims come."""
        return any(offer.made() for offer in self.parts.values())

    def renewed(self, cards: Iterable[Card]) -> "Offered":
        """The same offers with what the cards tell now; how they are cut up stays.

        New cards are not offered: all that works on cards has to know them from the start.
        """
        told = {card.index: card for card in cards}
        kept = tuple(structs.replace(told.get(one.index, one), mig=one.mig) for one in self.cards)
        modes = {
            now.uuid: self.modes[before.uuid] for before, now in zip(self.cards, kept, strict=True)
        }
        return structs.replace(self, cards=kept, modes=modes)

    def devices(self, *, counters: bool) -> tuple[Device, ...]:
        """What is published: cards first, then their parts.

        Without `counters` nothing keeps a card and its parts from being given out at once, so the
        parts that are made for claims are left out.
        """
        shown = [one for one in self.parts.values() if counters or not one.made()]
        cards = (card for card in self.cards if not is_cut_up(card, self.modes[card.uuid]))
        whole = (
            self._whole(card, [o for o in shown if o.card.uuid == card.uuid]) for card in cards
        )
        return (*whole, *map(part, shown))

    def _whole(self, card: Card, parts: Sequence[Offer]) -> Device:
        made = device(card, shareable=self.shareable)
        if self.shareable:
            limits = DeviceAttribute(string=self.limits)
            made = structs.replace(made, attributes={**made.attributes, LIMITS: limits})
        draws = (draws_all(card, parts),) if parts else ()
        return structs.replace(made, consumes_counters=draws)


def offered(
    cards: Sequence[Card],
    *,
    mig: MigMode,
    shareable: bool,
    limits: str = ADVISORY,
    held: Iterable[PreparedClaim] = (),
    ours: Collection[str] = (),
) -> Offered:
    """What there is to offer of these cards, when `mig` is wanted of those that can be cut up.

    `held` are the claims of this boot; `ours` the UUIDs of parts that this plugin has made.
    """
    parts = [d.partition for claim in held for d in claim.devices if d.partition]
    modes = {card.uuid: _mode(card, mig, parts, ours) for card in cards}
    found = (offer for card in cards for offer in offers(card, modes[card.uuid]))
    return Offered(
        cards=tuple(cards),
        modes=modes,
        parts={offer.name(): offer for offer in found},
        shareable=shareable,
        limits=limits,
    )


def cards_by_name(offer: Offered) -> dict[str, Card]:
    """The cards by the names of their devices, cut up ones too: what a claim has stays its own."""
    return {device_name(card): card for card in offer.cards}


def _mode(card: Card, wanted: MigMode, held: Sequence[Partition], ours: Collection[str]) -> MigMode:
    if card.mig is None or not card.uuid:
        return MigMode.OFF
    if any(one.made and one.parent == card.uuid for one in held):
        return MigMode.DYNAMIC
    foreign = [one for one in card.mig.instances if one.uuid not in ours]
    if wanted is MigMode.DYNAMIC and foreign:
        return MigMode.STATIC
    return wanted
