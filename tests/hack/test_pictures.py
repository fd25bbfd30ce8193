"""The pictures of the documentation are what the program makes of their examples today."""

import re
from xml.etree import ElementTree as ET

from hack.pictures import FILE, outcomes, picture
from hack.pictures.mix import KINDS, arrivals

SVG = "{http://www.w3.org/2000/svg}"


def test_the_picture_is_as_its_code_draws_it() -> None:
    """To take over a change: .venv/bin/python -m hack.pictures."""
    assert FILE.read_text("utf-8") == picture()


def test_the_picture_stands_alone() -> None:
    """Small, loads nothing, and has words for those who do not see it."""
    text = FILE.read_text("utf-8")
    assert len(text) < 60_000
    assert re.findall(r"https?://[^\"]+", text) == [SVG.strip("{}")]
    assert "<script" not in text
    root = ET.fromstring(text)  # noqa: S314 # our own file
    assert root.find(f"{SVG}title") is not None
    assert "room for" in (root.findtext(f"{SVG}desc") or "")
    assert "prefers-color-scheme: dark" in (root.findtext(f"{SVG}style") or "")


def test_both_sides_run_the_same_pods() -> None:
    """So that the picture compares places and nothing else."""
    alone, ours = outcomes()
    assert alone.turned_away == ours.turned_away == 0
    assert alone.pods == ours.pods > 0
    assert set(alone.holders.values()) == set(ours.holders.values())
    used = [sum(card.memory_used_mib for card in one.cards) for one in outcomes()]
    assert used[0] == used[1]


def test_room_is_what_can_really_be_placed() -> None:
    """A job of eight cards needs a machine that is wholly free: there are as many as are drawn."""
    for outcome in outcomes():
        assert outcome.room[8] == outcome.empty[-1]


def test_arrivals_are_drawn_from_the_seed() -> None:
    """The same for everybody, and others for another seed."""
    assert list(arrivals(1)) == list(arrivals(1)) != list(arrivals(2))
    assert {one.kind for one in arrivals(1)} == set(KINDS)
    assert all(one.leaves > number for number, one in enumerate(arrivals(1)))
