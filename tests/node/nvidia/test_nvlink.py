"""Which cards reach each other over NVLink."""

import pytest

from driver.node.nvidia.nvlink import SWITCH, Links, groups

CLIQUE = "4f1e0c5a-2b3d-4e6f-8091-a2b3c4d5e6f7.7"


def links(*ends: str, clique: str | None = None) -> dict[str, object]:
    """What a card has, but for its address."""
    return {"ends": frozenset(ends), "clique": clique}


@pytest.mark.parametrize(
    ("cards", "expected"),
    [
        ([links(), links()], {}),
        ([links("b"), links("a"), links()], {0: "0", 1: "0"}),
        ([links("b"), links("a"), links("d"), links("c")], {0: "0", 1: "0", 2: "2", 3: "2"}),
        ([links("c"), links("c"), links("a", "b")], {0: "0", 1: "0", 2: "0"}),
        ([links("b"), links("c"), links("d"), links("c")], {0: "0", 1: "0", 2: "0", 3: "0"}),
        ([links(SWITCH), links(), links(SWITCH), links(SWITCH)], {0: "0", 2: "0", 3: "0"}),
        ([links("elsewhere"), links()], {0: "0"}),
        ([links(SWITCH, clique=CLIQUE), links(SWITCH, clique=CLIQUE)], {0: CLIQUE, 1: CLIQUE}),
        ([links(clique="x.1"), links(clique="x.2"), links()], {0: "x.1", 1: "x.2"}),
        ([links(SWITCH, clique="x.1"), links(SWITCH)], {0: "x.1", 1: "1"}),
    ],
    ids=[
        "none",
        "pair",
        "two pairs",
        "star",
        "chain",
        "NVSwitch",
        "end outside the node",
        "one clique",
        "two cliques",
        "switch outside the clique",
    ],
)
def test_cards_that_reach_each_other_share_a_group(
    cards: list[dict[str, object]], expected: dict[int, str]
) -> None:
    """Over links, over switches, in a clique; NVSwitch is not "no NVLink"."""
    named = {
        index: Links(address=address, **card)  # type: ignore[arg-type]
        for index, (address, card) in enumerate(zip("abcd", cards, strict=False))
    }
    assert groups(named) == expected


def test_a_card_without_an_address_is_found_by_nobody() -> None:
    """Two that do not tell theirs are not linked to each other."""
    cards = {index: Links(ends=frozenset({"a"})) for index in range(2)}
    assert groups(cards) == {0: "0", 1: "1"}
