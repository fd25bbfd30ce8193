"""Which kinds of cards the cluster publishes: what a percentage of a card can be a part of."""

from collections.abc import Iterable

import msgspec

from driver.model import names
from driver.model.resourceslice import Device, ResourceSlice

# Only whole cards: a part of a card (a MIG instance, say) is nothing to take a percentage of.
_TYPE, _WHOLE = "type", "gpu"


class Card(msgspec.Struct, frozen=True, order=True):
    """One kind of card: its memory in bytes, and its product name."""

    memory: int
    product_name: str


def cards(slices: Iterable[ResourceSlice], driver: str) -> frozenset[Card]:
    """The kinds of whole cards that a driver publishes, as far as their memory is known."""
    found = (
        _card(device)
        for item in slices
        if item.spec.driver == driver
        for device in item.spec.devices
    )
    return frozenset(card for card in found if card is not None)


def _card(device: Device) -> Card | None:
    memory = device.capacity.get(names.MEMORY)
    kind = device.attributes.get(_TYPE)
    if memory is None or (kind is not None and kind.string != _WHOLE):
        return None
    product = device.attributes.get(names.PRODUCT_NAME)
    return Card(memory.value.ceil(), (product.string if product else None) or "")
