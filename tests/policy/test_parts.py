"""Parts of cards (MIG): a part is as good as its card is full, or empty."""

import pytest

from driver.model.ids import DeviceId
from driver.policy import fullness
from driver.policy.registry import BUILT_IN
from driver.policy.view import Choice, DeviceView, NodeView, Taken

GIB = 1024**3 * 10**9


def device(
    index: int, card: str, *, memory: int, part: bool = True, exclusive: bool = False
) -> DeviceView:
    """A card of 80 GiB, or a part of it."""
    return DeviceView(
        id=DeviceId("d", "n", f"{card}-{index}"),
        index=index,
        card=card,
        part=part,
        capacity={"memory": memory * GIB},
        exclusive=exclusive,
    )


def node(*, whole: bool = True) -> NodeView:
    """Two cards: of `a` a part of 10 is in use, of `b` one of 40."""
    devices = [
        device(0, "a", memory=10, exclusive=True),
        device(1, "a", memory=10),
        device(2, "b", memory=40, exclusive=True),
        device(3, "b", memory=10),
    ]
    if whole:
        devices += [device(4, "a", memory=80, part=False), device(5, "b", memory=80, part=False)]
    return NodeView(name="n", devices=tuple(devices))


@pytest.mark.parametrize(
    ("whole", "index", "full"),
    [(True, 1, 20 / 80), (True, 3, 50 / 80), (False, 1, 1.0), (False, 3, 1.0), (True, 4, 1.0)],
)
def test_a_part_is_as_full_as_its_card(whole: bool, index: int, full: float) -> None:
    """With the choice; where only parts are offered the card is all of them."""
    assert fullness.of_cards(node(whole=whole), Choice((Taken(index),)))[index] == full


def test_two_parts_of_one_choice_fill_it_together() -> None:
    """Both are as full as the card is with both."""
    view = NodeView(
        name="n",
        devices=(*node().devices, device(6, "a", memory=20)),
    )
    found = fullness.of_cards(view, Choice((Taken(1), Taken(6))))
    assert found == {1: 40 / 80, 6: 40 / 80}


@pytest.mark.parametrize(("policy", "best"), [("compact", 3), ("spread", 1)])
def test_policies_choose_by_card(policy: str, best: int) -> None:
    """Compact fills the fuller card, spread the emptier one."""
    objective = BUILT_IN.objective(policy)
    assert objective is not None
    scores = {index: objective.score(node(), Choice((Taken(index),))).total for index in (1, 3)}
    assert max(scores, key=lambda index: scores[index]) == best
