"""The picture of nodes and GPUs."""

import pytest

from driver.cli.render.matrix import ASCII, UNICODE, Signs, matrix
from driver.cli.simulation.report import CardUse


def _card(index: int, **changes: object) -> CardUse:
    facts: dict[str, object] = {
        "node": "n", "device": f"gpu-{index}", "index": index, "uuid": f"GPU-{index}",
        "product": "X", "nvlink_group": "", "memory_mib": 1024, "memory_used_mib": 0,
        "cores_used": 0, "shares": 0, "parts": 0, "exclusive": False,
    }  # fmt: skip
    return CardUse(**{**facts, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "unicode", "ascii_"),
    [
        ({}, "··", ".."),
        ({"exclusive": True, "memory_used_mib": 1024}, "██", "##"),
        ({"shares": 1, "memory_used_mib": 1024}, "██", "##"),
        ({"shares": 1, "memory_used_mib": 10}, "▒1", "+1"),
        ({"shares": 3, "memory_used_mib": 1024}, "▒3", "+3"),
        ({"shares": 12, "memory_used_mib": 24}, "▒*", "+*"),
        ({"shares": 2, "parts": 2, "memory_used_mib": 24}, "▚2", "%2"),
        ({"shares": 1, "parts": 1, "memory_used_mib": 1024}, "▚1", "%1"),
    ],
)
def test_signs(changes: dict[str, object], unicode: str, ascii_: str) -> None:
    """Every state has a sign of its own, with and without colour."""
    for signs, expected in ((UNICODE, unicode), (ASCII, ascii_)):
        row = matrix([_card(0, **changes)], signs)[1].plain
        assert row.split()[1] == expected


@pytest.mark.parametrize("signs", [UNICODE, ASCII])
def test_groups_nodes_total_and_legend(signs: Signs) -> None:
    """A bar where the NVLink group changes, a row a node, a total, and a legend that names all."""
    cards = [_card(index, nvlink_group=str(index // 2)) for index in range(4)]
    cards += [_card(0, node="longer-name", exclusive=True, memory_used_mib=1024)]
    head, first, second, total, legend = (line.plain for line in matrix(cards, signs))
    free, gap = signs.free * 2, signs.gap
    assert first.startswith(
        f"n            {free} {free} {gap} {free} {free}  4/4    0.0 of 4.0 GiB"
    )
    assert second.split()[:3] == ["longer-name", signs.whole * 2, "0/1"]
    assert total.split()[:2] == ["total", "4/5"]
    assert head.index("FREE") == first.index("4/4") == second.index("0/1") == total.index("4/5")
    assert gap in legend


def test_without_groups_the_legend_does_not_speak_of_them() -> None:
    """A sign that is not drawn needs no explanation."""
    assert ASCII.gap not in matrix([_card(0)], ASCII)[-1].plain


def test_no_cards() -> None:
    """An inventory without cards is no error."""
    assert [line.plain for line in matrix([], ASCII)] == ["no cards"]
