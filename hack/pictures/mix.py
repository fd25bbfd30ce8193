"""Which pods come, and how long each stays: drawn from a seed, the same for whoever places them."""

import math
import random
from collections.abc import Iterator, Mapping

import msgspec

# How often each kind of examples/busy-cluster/pods.yaml comes, of a hundred.
KINDS: Mapping[str, int] = {
    "notebook": 31,
    "inference": 31,
    "batch": 21,
    "finetune": 10,
    "train": 7,
}
# Of these, the ones that take a part of a card.
SHARES = frozenset({"notebook", "inference"})
ARRIVALS = 160
# How many others come, on average, before one that has come leaves.
STAYS = 42.0


class Arrival(msgspec.Struct, frozen=True):
    """A pod of this kind comes; it leaves just before the arrival of this number, if that comes."""

    kind: str
    leaves: int


def arrivals(seed: int) -> Iterator[Arrival]:
    """All that come, in order."""
    chance = random.Random(seed)  # noqa: S311 # nothing secret
    for number in range(ARRIVALS):
        kind = _drawn(chance.random())
        stay = -math.log(1 - chance.random()) * STAYS
        yield Arrival(kind, number + math.ceil(stay))


def _drawn(chance: float) -> str:
    left = chance * sum(KINDS.values())
    for kind, often in KINDS.items():
        left -= often
        if left < 0:
            return kind
    raise AssertionError("a chance of 1 or more")
