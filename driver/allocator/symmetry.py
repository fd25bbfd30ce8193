"""Which devices, and which requests, are the same for a search: trying one of them is enough."""

from collections.abc import Hashable, Sequence

from driver.allocator.demand import Candidate, Demand, Obstacle, Rules
from driver.allocator.scored import Scored
from driver.allocator.standing import Standing


def kinds(
    candidates: Sequence[Sequence[Candidate]], rules: Rules, scored: Scored
) -> dict[Candidate, Hashable]:
    """A mark for each candidate; the same mark means that the devices can be exchanged.

    `candidates` are by demand. Devices can be exchanged when the same demands may take the same of
    them, the constraints see the same in them, and scorers cannot tell them apart. Devices that
    draw from counters, or do not count in scores, are never exchanged.
    """
    roles: dict[Standing, list[Hashable]] = {}
    for number, several in enumerate(candidates):
        for candidate in several:
            role = number if candidate.demand.takes_all else (number, _part(candidate, rules))
            roles.setdefault(candidate.standing, []).append(role)
    marks: dict[Hashable, int] = {}
    kind: dict[Standing, int] = {}
    for standing, played in roles.items():
        place = scored.index.get(standing.device)
        looks: Hashable = standing.order
        if place is not None and not standing.device.device.consumes_counters:
            looks = scored.kinds[place], standing.condition.mark
        kind[standing] = marks.setdefault((looks, tuple(played)), len(marks))
    return {candidate: kind[candidate.standing] for several in candidates for candidate in several}


def twins(one: Demand, other: Demand) -> bool:
    """Whether two demands ask for the same under the same constraints, next to each other.

    Then their devices can be exchanged as a whole.
    """
    if one.takes_all or one.admin or other.admin or one.derived != other.derived:
        return False
    if one.constraints != other.constraints or one.device_class is not other.device_class:
        return False
    return one.signature == other.signature


def _part(candidate: Candidate, rules: Rules) -> Hashable:
    """What a demand takes of the device, and what its constraints see in it."""
    portion = candidate.portion(rules)
    return portion if isinstance(portion, Obstacle) else portion.key, candidate.values()
