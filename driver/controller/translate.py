"""What a container asks for in HAMi's words, read strictly.

HAMi (https://github.com/Project-HAMi/HAMi) describes shares of GPUs by extended resources. This
module reads them off one container and says what they mean; it knows neither claims nor patches.
Source of the rules: HAMi 2.10, `docs/hami.md` lists each with where we differ.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from driver.model.errors import InvalidObjectError, QuadrantError
from driver.model.quantity import NANO, Quantity, parse

WHOLE = 100
# The API refuses more results in one allocation (`AllocationResultsMaxSize`).
MAX_DEVICES = 32
_MAX_MIB = 2**31 - 1


class ImpossibleRequestError(QuadrantError):
    """What a pod asks for can never be given; the text says what is possible."""


# Source: `IsExtendedResourceName` and `IsQualifiedName` of Kubernetes' validation, its lengths
# left out.
ResourceName = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?$"
    ),
]


class ResourceNames(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """Under which names HAMi's resources are asked for in this cluster."""

    count: ResourceName = "nvidia.com/gpu"
    memory: ResourceName = "nvidia.com/gpumem"
    memory_percentage: ResourceName = "nvidia.com/gpumem-percentage"
    cores: ResourceName = "nvidia.com/gpucores"
    priority: ResourceName = "nvidia.com/priority"

    def __post_init__(self) -> None:
        """Raise `ValueError` where one name would mean two things."""
        names = self.all()
        if len(set(names)) != len(names):
            raise ValueError(f"expected five different names, not {', '.join(names)}")

    def all(self) -> tuple[str, ...]:
        """Every name, the number of cards first."""
        return (self.count, self.memory, self.memory_percentage, self.cores, self.priority)


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """How many cards, and which part of each; None stands for the whole card."""

    count: int = 1
    memory_mib: int | None = None
    memory_percentage: int | None = None
    cores: int | None = None

    @property
    def shares(self) -> bool:
        """Whether less than whole cards is asked for."""
        return (self.memory_mib, self.memory_percentage, self.cores) != (None, None, None)

    def covers(self, other: "Ask") -> bool:
        """Whether who asked for `other` can do with this: as many cards, no part smaller."""
        return (
            self.count == other.count
            and _at_least(self.cores, other.cores)
            and _memory_covers(self, other)
        )


def _at_least(mine: int | None, theirs: int | None) -> bool:
    return mine is None or (theirs is not None and mine >= theirs)


def _memory_covers(mine: Ask, theirs: Ask) -> bool:
    if mine.memory_mib is None and mine.memory_percentage is None:
        return True
    if theirs.memory_mib is not None and mine.memory_mib is not None:
        return mine.memory_mib >= theirs.memory_mib
    if theirs.memory_percentage is not None and mine.memory_percentage is not None:
        return mine.memory_percentage >= theirs.memory_percentage
    return False


def present(container: Mapping[str, Any], resources: ResourceNames) -> tuple[str, ...]:
    """Which of HAMi's resources a raw container names, in limits or in requests."""
    asked = _lists(container)
    return tuple(name for name in resources.all() if any(name in part for part in asked))


def read(container: Mapping[str, Any], resources: ResourceNames) -> Ask | None:
    """What a raw container asks for; None when it asks for no card at all.

    A limit goes before a request, `memory` before `memory_percentage`. Raises
    `ImpossibleRequestError` naming the container and the resource.
    """
    found = {name: _whole(container, name) for name in present(container, resources)}
    share = (resources.memory, resources.memory_percentage, resources.cores)
    if resources.count not in found and not any(name in found for name in share):
        return None
    count = found.get(resources.count, 1)
    if count == 0:
        return None
    if count > MAX_DEVICES:
        raise _out_of_range(container, resources.count, count, MAX_DEVICES)
    return _ask(container, resources, found, count)


def _ask(
    container: Mapping[str, Any], resources: ResourceNames, found: dict[str, int], count: int
) -> Ask:
    for name, limit in (
        (resources.memory, _MAX_MIB),
        (resources.memory_percentage, WHOLE),
        (resources.cores, WHOLE),
    ):
        if found.get(name, 0) > limit:
            raise _out_of_range(container, name, found[name], limit)
    # Zero means "not set" for both: HAMi falls back to the whole card.
    memory = found.get(resources.memory) or None
    percentage = found.get(resources.memory_percentage) or WHOLE
    whole_memory = memory is None and percentage == WHOLE
    # Who has all the memory has the card for itself, unless its share of the cores is limited. A
    # share of the memory that says nothing of cores takes none of them away from others.
    cores: int | None = found.get(resources.cores, 0)
    if whole_memory and cores in (0, WHOLE):
        cores = None
    return Ask(
        count=count,
        memory_mib=memory,
        memory_percentage=None if memory is not None or whole_memory else percentage,
        cores=cores,
    )


def removed(
    container: Mapping[str, Any], resources: ResourceNames
) -> dict[str, dict[str, str | int | float]]:
    """What a translation takes out of a raw container: `{"limits": {…}, "requests": {…}}`."""
    asked = container.get("resources") or {}
    kept: dict[str, dict[str, str | int | float]] = {}
    for part in ("limits", "requests"):
        values = asked.get(part) or {}
        ours = {name: values[name] for name in resources.all() if name in values}
        if ours:
            kept[part] = ours
    return kept


def priority(container: Mapping[str, Any], resources: ResourceNames) -> int | None:
    """HAMi's task priority of a raw container, where it is set."""
    if resources.priority not in present(container, resources):
        return None
    return _whole(container, resources.priority)


def _lists(container: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    asked = container.get("resources") or {}
    return asked.get("limits") or {}, asked.get("requests") or {}


def _whole(container: Mapping[str, Any], name: str) -> int:
    """The amount of one resource; what Kubernetes would refuse in one, we refuse too."""
    limits, requests = _lists(container)
    amounts = [
        _quantity(container, name, part[name]) for part in (limits, requests) if name in part
    ]
    if len(amounts) > 1 and amounts[0] != amounts[1]:
        raise ImpossibleRequestError(
            f"container {container.get('name')!r} limits {name} to {amounts[0]} and requests "
            f"{amounts[1]}: the two must be equal, or one of them left out"
        )
    amount = amounts[0]
    if amount.nano < 0 or amount.nano % NANO:
        raise ImpossibleRequestError(
            f"container {container.get('name')!r} asks for {amount} of {name}: "
            "it must be a whole number that is not negative"
        )
    return amount.nano // NANO


def _quantity(container: Mapping[str, Any], name: str, value: Any) -> Quantity:
    try:
        return parse(value if isinstance(value, str) else repr(value))
    except InvalidObjectError as error:
        raise ImpossibleRequestError(
            f"container {container.get('name')!r}: {name} cannot be read: {error}"
        ) from error


def _out_of_range(
    container: Mapping[str, Any], name: str, value: int, limit: int
) -> ImpossibleRequestError:
    return ImpossibleRequestError(
        f"container {container.get('name')!r} asks for {value} of {name}: "
        f"it must be a whole number from 0 to {limit}"
    )
