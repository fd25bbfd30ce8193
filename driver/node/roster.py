"""Which number every card has, and what is known of those that are gone.

A driver that is loaded anew counts the cards that it still finds from 0, but a claim names its card
by number. So a number stays with its card for as long as the machine runs, also over restarts of
the plugin, and a card that is not told of any more is lost rather than forgotten.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec
import structlog

from driver.node.card import Card, Inventory
from driver.node.files import replace_file

GONE = "the driver no longer lists it"

log = structlog.get_logger(__name__)


class _Notes(msgspec.Struct, frozen=True, kw_only=True):
    boot: str
    cards: tuple[Card, ...] = ()


def number(found: Iterable[Card], known: Iterable[Card]) -> tuple[Card, ...]:
    """The cards found, each with the number it had, and those of `known` that were not found.

    A card is the same by its UUID; one that does not tell it, by its PCI address, else by its
    number, or because no other is left. What a lost card does not tell is taken from what was
    known. In the order of the number.
    """
    left = {card.index: card for card in known}
    numbered: dict[int, Card] = {}
    new: list[Card] = []
    # Those that tell who they are choose first.
    for card in sorted(found, key=lambda card: (not card.uuid, not card.pci_bus_id, card.index)):
        before = _same(card, left.values())
        if before is None:
            new.append(card)
            continue
        del left[before.index]
        numbered[before.index] = _completed(card, before)
    gone = {card.index: _lost(card) for card in left.values()}
    taken = {*numbered, *gone}
    for card in sorted(new, key=lambda card: card.index):
        index = card.index if card.index not in taken else max(taken) + 1
        taken.add(index)
        numbered[index] = msgspec.structs.replace(card, index=index)
    everything = {**numbered, **gone}
    return tuple(everything[index] for index in sorted(everything))


def _same(card: Card, known: Iterable[Card]) -> Card | None:
    """What was known of this card; of one that does not tell who it is, the likeliest left."""
    likeliest = sorted(known, key=lambda one: (one.index != card.index, one.index))
    return next((one for one in likeliest if _may_be(card, one)), None)


def _may_be(card: Card, known: Card) -> bool:
    if card.uuid and known.uuid:
        return card.uuid == known.uuid
    if card.pci_bus_id and known.pci_bus_id:
        return card.pci_bus_id == known.pci_bus_id
    return card.lost is not None or card.index == known.index


def _completed(card: Card, before: Card) -> Card:
    if card.lost is None:
        return msgspec.structs.replace(card, index=before.index)
    told = {name: value for name, value in msgspec.structs.asdict(card).items() if value}
    return msgspec.structs.replace(before, **{**told, "index": before.index})


def _lost(card: Card) -> Card:
    return msgspec.structs.replace(card, lost=card.lost or GONE)


class Roster:
    """An inventory over another one, with a file of the cards of this boot."""

    def __init__(self, inventory: Inventory, path: Path, *, boot: str) -> None:
        self._inventory = inventory
        self._path = path
        self._boot = boot
        self._known: tuple[Card, ...] | None = None

    def cards(self) -> tuple[Card, ...]:
        """All cards of this node since it started, now; raises what the inventory raises."""
        known = self._read() if self._known is None else self._known
        cards = number(self._inventory.cards(), known)
        if cards != known:
            self._write(cards)
        self._known = cards
        return cards

    def _read(self) -> tuple[Card, ...]:
        try:
            notes = msgspec.json.decode(self._path.read_bytes(), type=_Notes)
        except FileNotFoundError:
            return ()
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            log.warning("cards are numbered anew", file=str(self._path), error=str(error))
            return ()
        return notes.cards if notes.boot == self._boot else ()

    def _write(self, cards: tuple[Card, ...]) -> None:
        try:
            replace_file(self._path, msgspec.json.encode(_Notes(boot=self._boot, cards=cards)))
        except OSError as error:
            log.warning("numbers of cards are not kept", file=str(self._path), error=str(error))
