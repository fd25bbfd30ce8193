"""Numbers of cards that stay."""

from pathlib import Path

import pytest

from driver.node.card import Card
from driver.node.roster import GONE, Roster, number


def card(index: int, uuid: str = "", *, pci: str | None = None, lost: str | None = None) -> Card:
    """A card of which this is known."""
    return Card(index=index, uuid=uuid, pci_bus_id=pci, lost=lost, memory=0 if lost else 8)


A, B, C = card(0, "a", pci="pa"), card(1, "b", pci="pb"), card(2, "c", pci="pc")


def gone(known: Card) -> Card:
    """As a card is told of that the driver no longer lists."""
    return Card(**{name: getattr(known, name) for name in known.__struct_fields__} | {"lost": GONE})


@pytest.mark.parametrize(
    ("found", "known", "expected"),
    [
        ([A, B, C], [], [A, B, C]),
        ([card(0, "b", pci="pb"), card(1, "c", pci="pc")], [A, B, C], [gone(A), B, C]),
        ([C, A], [A, B, C], [A, gone(B), C]),
        ([A, card(1, "new")], [A, B], [A, gone(B), card(2, "new")]),
        ([A, card(5, "new")], [A], [A, card(5, "new")]),
        ([card(0, "a", pci="pa")], [card(0, lost="x"), B], [A, gone(B)]),
        (
            [card(0, "b")],
            [card(1, pci="pb", lost="x")],
            [card(0, "b"), card(1, pci="pb", lost="x")],
        ),
    ],
    ids=[
        "the first time",
        "the driver counts anew",
        "in another order",
        "a new card in a gone one's place",
        "a new card has a free number",
        "a card tells who it is",
        "nothing says that it is the same",
    ],
)
def test_a_number_stays_with_its_card(
    found: list[Card], known: list[Card], expected: list[Card]
) -> None:
    """A claim names its card by number, and must find the same card behind it."""
    assert number(found, known) == tuple(expected)


@pytest.mark.parametrize(
    "told",
    [
        card(1, lost="no answer"),
        card(7, pci="pb", lost="no answer"),
        card(7, "b", lost="no answer"),
        card(0, lost="no answer"),
    ],
    ids=["only a number", "its address", "its UUID", "a number of another"],
)
def test_a_lost_card_is_completed_from_what_was_known(told: Card) -> None:
    """Also where nothing but the others tells which one it must be."""
    (first, lost, last) = number([A, told, C], [A, B, C])
    assert (first, last) == (A, C)
    assert (lost.index, lost.uuid, lost.pci_bus_id, lost.memory) == (1, "b", "pb", 8)
    assert lost.lost == "no answer"


def silent(known: Card) -> Card:
    """As a card is told of that has stopped to answer."""
    return Card(**{n: getattr(known, n) for n in known.__struct_fields__} | {"lost": "no answer"})


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([A, card(2, lost="no answer")], [A, gone(B), silent(C)]),
        ([A, card(7, pci="pc", lost="no answer")], [A, gone(B), silent(C)]),
        ([card(0, lost="no answer"), card(1, "a", pci="pa"), C], [A, silent(B), C]),
    ],
    ids=["by its number", "by its address", "by what is left when the others have chosen"],
)
def test_who_a_silent_card_is_among_several_that_are_missing(
    found: list[Card], expected: list[Card]
) -> None:
    """By the best that it tells, and never somebody who tells who he is."""
    assert number(found, [A, B, C]) == tuple(expected)


class Told:
    """An inventory that tells what it is told to."""

    def __init__(self, *cards: Card) -> None:
        self.told = cards

    def cards(self) -> tuple[Card, ...]:
        """As told."""
        return self.told


def test_numbers_outlive_the_process_but_not_the_boot(tmp_path: Path) -> None:
    """After a reboot nothing runs that has a card, and a card that was taken out is no longer."""
    path = tmp_path / "cards.json"
    Roster(Told(A, B), path, boot="one").cards()
    restarted = Roster(Told(card(0, "b", pci="pb")), path, boot="one")
    assert restarted.cards() == restarted.cards() == (gone(A), B)
    assert Roster(Told(card(0, "b")), path, boot="two").cards() == (card(0, "b"),)


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b'{"boot": "one", "cards": [{}]}'])
def test_a_damaged_file_costs_the_numbers_only(tmp_path: Path, content: bytes) -> None:
    """The cards are there; they are counted anew."""
    path = tmp_path / "cards.json"
    path.write_bytes(content)
    assert Roster(Told(B), path, boot="one").cards() == (B,)
    assert Roster(Told(), path, boot="one").cards() == (gone(B),)


def test_a_disk_that_takes_nothing_is_no_reason_to_have_no_cards(tmp_path: Path) -> None:
    """It is complained about, and the cards are told."""
    assert Roster(Told(A), tmp_path / "missing" / "cards.json", boot="one").cards() == (A,)
