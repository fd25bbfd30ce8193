"""Which cards of a node are linked to each other, from what is at the far end of their links.

Pure.
"""

from collections.abc import Mapping

# The far end of every link into a switch: the switches of one node form one fabric, and hosts that
# pass cards through to a machine hide which switch it is.
SWITCH = "switch"


def groups(ends: Mapping[int, frozenset[str]], addresses: Mapping[int, str]) -> dict[int, str]:
    """The group of every card that has a link; cards without are absent.

    `ends` holds, by index of a card, the PCI addresses of its links' far ends, or `SWITCH`;
    `addresses` the cards' own. A group is named after the lowest index in it, and a card whose
    links all end outside this node has a group of its own.
    """
    owner = {address: index for index, address in addresses.items()}
    lowest = {index: index for index in ends if ends[index]}

    def find(index: int) -> int:
        while lowest[index] != index:
            index = lowest[index]
        return index

    switched = [index for index in lowest if SWITCH in ends[index]]
    pairs = [(switched[0], index) for index in switched[1:]]
    for index in lowest:
        pairs += [(index, owner[end]) for end in ends[index] if owner.get(end) in lowest]
    for left, right in pairs:
        low, high = sorted((find(left), find(right)))
        lowest[high] = low
    return {index: str(find(index)) for index in lowest}
