"""Which cards of a node reach each other over NVLink, from what is at the far end of their links.

Pure.
"""

from collections.abc import Mapping

import msgspec

# The far end of every link into a switch: the switches of one node form one fabric, and hosts that
# pass cards through to a machine hide which switch it is.
SWITCH = "switch"


class Links(msgspec.Struct, frozen=True, kw_only=True):
    """What one card has of NVLink."""

    # Its own PCI address; None where it does not tell.
    address: str | None = None
    # The PCI addresses of its links' far ends, or `SWITCH`.
    ends: frozenset[str] = frozenset()
    # Its clique in a fabric of several machines, "CLUSTER.CLIQUE"; None: in none.
    clique: str | None = None


def groups(cards: Mapping[int, Links]) -> dict[int, str]:
    """The group of every card that has a link; cards without are absent.

    A group is named after its clique, which is the same on all machines of the fabric, or else
    after the lowest index in it. A card whose links all end outside this node has a group of its
    own.
    """
    linked = {index: links for index, links in cards.items() if links.ends or links.clique}
    lowest = {index: index for index in linked}

    def find(index: int) -> int:
        while lowest[index] != index:
            index = lowest[index]
        return index

    for left, right in _pairs(linked):
        low, high = sorted((find(left), find(right)))
        lowest[high] = low
    cliques = {find(index): links.clique for index, links in linked.items() if links.clique}
    return {index: cliques.get(find(index)) or str(find(index)) for index in linked}


def _pairs(linked: Mapping[int, Links]) -> list[tuple[int, int]]:
    """Every two cards that are linked; of a fabric, each card with its first one."""
    owner = {links.address: index for index, links in linked.items() if links.address}
    pairs = [
        (index, owner[end]) for index, links in linked.items() for end in links.ends if end in owner
    ]
    first: dict[str, int] = {}
    for index, links in linked.items():
        fabric = links.clique or (SWITCH if SWITCH in links.ends else None)
        if fabric is not None:
            pairs.append((first.setdefault(fabric, index), index))
    return pairs
