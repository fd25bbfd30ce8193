"""What the cluster has, can give and has given, model by model.

The states are those of the metrics (docs/metrics.md).
"""

from collections import Counter
from collections.abc import Iterable

from driver.cli.fleet.report import Capacity, Card


class Capacities:
    """Cards added up by model, a node at a time."""

    def __init__(self) -> None:
        self._numbers: dict[str, Counter[str]] = {}
        self._largest: dict[str, int] = {}

    def add(self, cards: Iterable[Card]) -> None:
        """Count the cards of one more node."""
        groups: Counter[tuple[str, str]] = Counter()
        for card in cards:
            self._numbers.setdefault(card.model, Counter()).update(_numbers(card))
            groups[card.model, card.nvlink_group] += card.open
        for (model, _), size in groups.items():
            self._largest[model] = max(size, self._largest.get(model, 0))

    def told(self) -> tuple[Capacity, ...]:
        """All models, by name."""
        return tuple(
            Capacity(
                model=model,
                physical=numbers["physical"],
                allocatable=numbers["allocatable"],
                committed=numbers["committed"],
                largest_free=self._largest[model],
                memory_mib=numbers["memory"],
                memory_used_mib=numbers["used"],
                memory_free_mib=numbers["free"],
                memory_whole_mib=numbers["whole"],
            )
            for model, numbers in sorted(self._numbers.items())
        )


def in_use(card: Card) -> bool:
    """Whether somebody has it, or a part of it."""
    return card.use in ("whole", "shared") or bool(card.mig_in_use)


def _numbers(card: Card) -> dict[str, int]:
    held, closed = in_use(card), bool(card.taints)
    left = max(0, card.memory_mib - card.memory_used_mib)
    free = 0 if closed or card.use == "whole" else left
    return {
        "physical": 1,
        "allocatable": int(held or not closed),
        "committed": int(held),
        "memory": card.memory_mib,
        "used": card.memory_mib if card.use == "whole" else card.memory_used_mib,
        "free": free,
        "whole": 0 if held else free,
    }
