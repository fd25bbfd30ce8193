"""Which parts of a card are offered, what they are called, and what is published of them (MIG).

Pure. A card that is cut up as claims come (`dynamic`) is published whole and in all parts that it
can be cut into; what is shared between them are counters (KEP-4815), of which the whole card draws
all. A card that somebody else has cut up (`static`) is published as its parts, and as nothing else.
"""

import re
from collections.abc import Iterable
from enum import StrEnum

import msgspec

from driver.model.names import MEMORY, MIG_CAPABLE, NVLINK_GROUP, PARENT_UUID, PCIE_SWITCH, UUID
from driver.model.quantity import whole
from driver.model.resourceslice import (
    Counter,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
)
from driver.node.card import Card
from driver.node.device import attributes, device_name
from driver.node.mig import MigInstance, MigProfile

_TYPE = "mig"
# Of the card as a whole, such as over what it reaches other cards: its parts reach none. A device
# has at most 32 attributes and capacities, and the largest part of a card already has 28 without
# these; operators may want to add some of their own.
_OF_WHOLE_CARDS = frozenset(
    {NVLINK_GROUP, PCIE_SWITCH, MIG_CAPABLE, "addressingMode", "gpuModuleID"}
)
_SAFE = re.compile(r"[^a-z0-9]+")


class MigMode(StrEnum):
    """What the operator wants of cards that can be cut up."""

    OFF = "off"
    STATIC = "static"
    DYNAMIC = "dynamic"


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a card that a claim can have."""

    card: Card
    profile: MigProfile
    start: int
    # Of the part that is there; empty where it is made for the claim.
    uuid: str = ""

    def name(self) -> str:
        """The device's name: the same whenever it is the same part of the same card."""
        return f"{device_name(self.card)}-mig-{_label(self.profile.name)}-{self.start}"

    def made(self) -> bool:
        """Whether it is made for a claim, and removed after it."""
        return not self.uuid


def offers(card: Card, mode: MigMode) -> tuple[Offer, ...]:
    """The parts of a card that are offered, in the order in which they should be taken first.

    Parts that begin at the end come first in their kind: the front is where the largest ones fit.
    """
    if card.mig is None or mode is MigMode.OFF:
        return ()
    if mode is MigMode.STATIC:
        return (
            tuple(_found(card, card.mig.instances, card.mig.profiles)) if card.mig.enabled else ()
        )
    return tuple(
        Offer(card=card, profile=profile, start=start)
        for profile in sorted(card.mig.profiles, key=lambda one: (one.size, one.name))
        for start in sorted(profile.starts, reverse=True)
    )


def is_cut_up(card: Card, mode: MigMode) -> bool:
    """Whether the card itself is not offered: in MIG mode nothing runs on it, only on its parts.

    Only where claims cut cards up is the mode turned off for who wants the card whole.
    """
    return mode is not MigMode.DYNAMIC and card.mig is not None and card.mig.enabled


def part(offer: Offer) -> Device:
    """What is published of a part."""
    known = attributes(offer.card)
    inherited = {
        name: value for name, value in known.items() if name not in {*_OF_WHOLE_CARDS, UUID, "type"}
    }
    own = {"type": _TYPE, "profile": offer.profile.name, PARENT_UUID: offer.card.uuid}
    if offer.uuid:
        own[UUID] = offer.uuid
    return Device(
        name=offer.name(),
        attributes={**{n: DeviceAttribute(string=text) for n, text in own.items()}, **inherited},
        capacity=_capacities(offer),
        consumes_counters=(_draws(offer.card, _amounts(offer)),) if offer.made() else (),
    )


def draws_all(card: Card, of: Iterable[Offer]) -> DeviceCounterConsumption:
    """What the whole card draws from its counters while a claim has it: all that there is."""
    found = [_amounts(offer) for offer in of]
    names = dict.fromkeys(name for amounts in found for name in amounts)
    return _draws(card, {name: max(one.get(name, 0) for one in found) for name in names})


def counter_set(card: Card) -> str:
    """What the card's counters are called."""
    return f"{device_name(card)}-counter-set"


def _found(
    card: Card, instances: Iterable[MigInstance], profiles: Iterable[MigProfile]
) -> Iterable[Offer]:
    known = {profile.name: profile for profile in profiles}
    for instance in sorted(instances, key=lambda one: (one.start, one.profile)):
        if instance.profile in known:
            yield Offer(
                card=card,
                profile=known[instance.profile],
                start=instance.start,
                uuid=instance.uuid,
            )


def _label(profile: str) -> str:
    """A profile's name as part of a DNS label: 1g.10gb+me is 1g10gb-me, 1g.24gb-me 1g24gb-no-me."""
    words = profile.lower().replace(".", "", 1).replace("-", "-no-")
    return _SAFE.sub("-", words).strip("-")


def _amounts(offer: Offer) -> dict[str, int]:
    engines = {_dashed(name): amount for name, amount in _engines(offer.profile).items()}
    slices = range(offer.start, offer.start + offer.profile.size)
    return {**engines, **{f"memory-slice-{number}": 1 for number in slices}}


def _engines(profile: MigProfile) -> dict[str, int]:
    return {
        "multiprocessors": profile.multiprocessors,
        "copyEngines": profile.copy_engines,
        "decoders": profile.decoders,
        "encoders": profile.encoders,
        "jpegEngines": profile.jpeg_engines,
        "ofaEngines": profile.ofa_engines,
    }


def _capacities(offer: Offer) -> dict[str, DeviceCapacity]:
    slices = range(offer.start, offer.start + offer.profile.size)
    return {
        MEMORY: DeviceCapacity(value=whole(offer.profile.memory, "BinarySI")),
        **{n: DeviceCapacity(value=whole(a)) for n, a in _engines(offer.profile).items()},
        **{f"memorySlice{number}": DeviceCapacity(value=whole(1)) for number in slices},
    }


def _draws(card: Card, amounts: dict[str, int]) -> DeviceCounterConsumption:
    return DeviceCounterConsumption(
        counter_set=counter_set(card),
        counters={name: Counter(value=whole(n)) for name, n in amounts.items() if n},
    )


def _dashed(name: str) -> str:
    return re.sub(r"([A-Z])", lambda match: f"-{match[1].lower()}", name)
