"""The devices of a node that count in scores, and what no use of them changes.

Worked out once a pool (`Pool.scored`): a decision only adds what is in use.
"""

from collections.abc import Sequence

from driver.allocator.device import PooledDevice
from driver.policy.view import Layout, Partition


class Scored:
    """Scored devices in the scheduler's order.

    `index` is the place of each; `layout` how they are connected; `kinds` has the same number for
    devices that scorers cannot tell apart while equally much of them is in use.
    """

    __slots__ = ("devices", "index", "kinds", "layout")

    def __init__(self, devices: Sequence[PooledDevice]) -> None:
        self.devices = tuple(devices)
        self.index = {device: place for place, device in enumerate(self.devices)}
        self.layout = Layout.of([device.traits for device in self.devices])
        self.kinds = _kinds(self.devices, self.layout)


def _kinds(devices: Sequence[PooledDevice], layout: Layout) -> tuple[int, ...]:
    places = (layout.nvlink_groups, layout.pcie_switches, layout.pcie_roots)
    numbers: dict[object, int] = {}
    kinds = []
    for place, device in enumerate(devices):
        traits = device.traits
        links = tuple([_shared(one, place) for one in places])
        capacity = tuple(traits.capacity.items())
        looks = traits.model, links, traits.numa_node, traits.shareable, traits.card, capacity
        kinds.append(numbers.setdefault(looks, len(numbers)))
    return tuple(kinds)


def _shared(places: Partition, device: int) -> int | None:
    """Where a device is with others. What it is alone in says nothing (`policy.view`)."""
    place = places.of[device]
    return place if places.size[place] > 1 else None
