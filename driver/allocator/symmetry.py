"""Which devices, and which requests, are the same for a search: trying one of them is enough."""

from collections.abc import Hashable, Mapping, Sequence

from driver.allocator.demand import Candidate, Demand
from driver.allocator.device import PooledDevice
from driver.allocator.standing import Standing
from driver.policy.view import DeviceView, NodeView


def kinds(
    candidates: Sequence[Sequence[Candidate]],
    view: NodeView,
    index: Mapping[PooledDevice, int],
) -> dict[Candidate, Hashable]:
    """A mark for each candidate; the same mark means that the devices can be exchanged.

    `candidates` are by demand. Devices can be exchanged when the same demands may take them, the
    constraints see the same in them, and scorers cannot tell them apart. Devices that draw from
    counters are never exchanged.
    """
    roles: dict[Standing, list[Hashable]] = {}
    for number, several in enumerate(candidates):
        for candidate in several:
            values = () if candidate.demand.takes_all else candidate.values()
            roles.setdefault(candidate.standing, []).append((number, values))
    marks: dict[Hashable, int] = {}
    kind: dict[Standing, int] = {}
    for standing, role in roles.items():
        device = standing.device
        place = index.get(device)
        looks = device.id if place is None else _looks(view.devices[place])
        alone = standing.order if device.device.consumes_counters else None
        kind[standing] = marks.setdefault((looks, alone, tuple(role)), len(marks))
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


def _looks(device: DeviceView) -> Hashable:
    return (
        device.model,
        device.nvlink_group,
        device.pcie_root,
        device.numa_node,
        device.shareable,
        device.exclusive,
        device.shares,
        tuple(device.capacity.items()),
        tuple(device.used.items()),
    )
