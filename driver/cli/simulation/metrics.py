"""How good a simulated placement is, in numbers: what policies are compared by."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from driver.cli.simulation.report import CardUse, Metrics, PendingPod, Placement

_DIGITS = 2
# Of these more is better, so that a bound from below makes sense.
BOUNDED: Mapping[str, Callable[[Metrics], float]] = {
    "placed": lambda metrics: metrics.placed,
    "placedPercent": lambda metrics: metrics.placed_percent,
    "cardsFree": lambda metrics: metrics.cards_free,
    "nodesFree": lambda metrics: metrics.nodes_free,
    "largestFreeGroup": lambda metrics: metrics.largest_free_group,
    "wholeFreePercent": lambda metrics: metrics.whole_free_percent,
}


def bounded(metrics: Metrics) -> dict[str, float]:
    """The metrics of which more is better, by their names."""
    return {name: value(metrics) for name, value in BOUNDED.items()}


def measure(
    placements: Sequence[Placement], pending: Sequence[PendingPod], cards: Sequence[CardUse]
) -> Metrics:
    """The numbers of one simulation."""
    pods = len(placements) + len(pending)
    free = [card for card in cards if _untouched(card)]
    nodes = {card.node for card in cards}
    used_nodes = {card.node for card in cards if not _untouched(card)}
    left = sum(_left(card) for card in cards)
    whole = 100 * sum(map(_left, free)) / left if left else 100.0
    return Metrics(
        placed=len(placements),
        pending=len(pending),
        placed_percent=round(100 * len(placements) / pods, _DIGITS) if pods else 100.0,
        pending_by_reason=_by_reason(pending),
        cards_used=len(cards) - len(free),
        cards_free=len(free),
        nodes_used=len(used_nodes),
        nodes_free=len(nodes - used_nodes),
        largest_free_group=max(Counter(map(_group, free)).values(), default=0),
        fragmentation=round(100 - whole, _DIGITS),
        whole_free_percent=round(whole, _DIGITS),
    )


def _untouched(card: CardUse) -> bool:
    return not (card.exclusive or card.shares or card.memory_used_mib)


def _left(card: CardUse) -> int:
    """What is free of a card, in MiB; one that publishes no memory counts as one."""
    if card.exclusive:
        return 0
    return card.memory_mib - card.memory_used_mib if card.memory_mib else int(_untouched(card))


def _group(card: CardUse) -> tuple[str, str]:
    """Cards of one node and one NVLink group; where there are none, all of the node."""
    return card.node, card.nvlink_group


def _by_reason(pending: Iterable[PendingPod]) -> dict[str, int]:
    counted = Counter(("refused: " if pod.refused else "") + pod.reason for pod in pending)
    return dict(counted.most_common())
