"""The matrix of `nvidia-smi topo -m`, with the pairs marked that a claim has together."""

from collections.abc import Iterator

from rich.text import Text

from driver.cli.fleet.links import MEANING
from driver.cli.fleet.topology import Topology
from driver.cli.render.matrix import MIB_PER_GIB

_USES = {"free": "free", "whole": "whole", "shared": "shared", "mig": "MIG"}


def as_text(found: Topology) -> list[Text]:
    """The matrix, who has which card, and what the letters mean."""
    names = [f"GPU{card.index}" if card.index >= 0 else card.device for card in found.cards]
    rows = [["", *names, "NUMA", "NVLINK", "USE", "CLAIMS"]]
    for place, card in enumerate(found.cards):
        links = [_marked(found, place, other) for other in range(len(found.cards))]
        numa = "-" if card.numa_node is None else str(card.numa_node)
        claims = ", ".join(card.claims) or "-"
        rows.append([names[place], *links, numa, card.nvlink_group or "-", _use(found, place)])
        rows[-1].append(claims)
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [
        Text("  ".join(f"{text:<{size}}" for text, size in zip(row, widths, strict=True)).rstrip())
        for row in rows
    ]
    lines[0].stylize("bold")
    for line in lines[1:]:
        line.highlight_regex(r"\[\w+\]", "bold reverse")
    return [Text(f"node {found.node}"), *lines, *(Text(one, style="dim") for one in _legend(found))]


def _marked(found: Topology, one: int, other: int) -> str:
    link = found.links[one][other]
    return f"[{link}]" if found.together(one, other) else link


def _use(found: Topology, place: int) -> str:
    card = found.cards[place]
    said = _USES[card.use]
    if card.use == "shared" and card.shares == 1 and card.memory_used_mib == card.memory_mib:
        said = _USES["whole"]
    elif card.use == "shared":
        shares = "1 share" if card.shares == 1 else f"{card.shares} shares"
        said = f"{shares}, {card.memory_used_mib / MIB_PER_GIB:.1f} GiB"
    elif card.mig_in_use:
        said = f"MIG {', '.join(card.mig_in_use)}"
    return f"{said}, tainted" if card.taints else said


def _legend(found: Topology) -> Iterator[str]:
    drawn = {link for row in found.links for link in row}
    yield "   ".join(f"{sign} {words}" for sign, words in MEANING.items() if sign in drawn)
    if any(found.together(a, b) for a in range(len(found.cards)) for b in range(a)):
        yield "[..] one claim has both cards"
