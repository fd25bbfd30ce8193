"""What the cards that do not answer are to others: a taint, so that they are seen and not used.

Pure.
"""

from collections.abc import Iterable

from driver.model.names import UNHEALTHY_TAINT
from driver.model.resourceslice import DeviceTaint
from driver.node.card import Card
from driver.node.device import device_name

# Who says so on the board.
SOURCE = "inventory"


def taints(cards: Iterable[Card], *, driver: str) -> dict[str, tuple[DeviceTaint, ...]]:
    """The taints of cards that do not answer, or not to everything, by the device's name.

    Nothing new is sent there. Who uses the card is left alone: whether programs still run on it is
    for the health of cards to find out.
    """
    lost = DeviceTaint(key=f"{driver}/{UNHEALTHY_TAINT}", value="lost", effect="NoSchedule")
    return {device_name(card): (lost,) for card in cards if card.lost is not None}
