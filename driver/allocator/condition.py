"""How a device stands with a certain use of it: what is left, and how scorers see it.

Kept beside the device as long as that use lasts (`PooledDevice.under`): most devices of a node are
as they were when the node was looked at last.
"""

from collections.abc import Hashable

import msgspec

from driver.model.allocation import DeviceUse
from driver.model.ids import DeviceId
from driver.policy.view import DeviceView

UNUSED = DeviceUse()


class Traits(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What scorers see of a device as it is published; capacity in nano units."""

    id: DeviceId
    model: str
    nvlink_group: str | None
    pcie_root: str | None
    numa_node: int | None
    shareable: bool
    capacity: dict[str, int]
    card: str | None = None
    part: bool = False
    pcie_switch: str | None = None


class Condition:
    """A device under one use; `mark` is equal where equally much is in use."""

    __slots__ = ("_left", "_traits", "_used", "_view", "in_use", "mark", "use")

    def __init__(self, traits: Traits, use: DeviceUse) -> None:
        self.use = use
        self.in_use = bool(use.exclusive or use.shares or use.consumed)
        used = {name: amount.nano for name, amount in use.consumed.items()}
        self.mark: Hashable = use.exclusive, len(use.shares), tuple(used.items())
        self._traits = traits
        self._used = used
        self._left: dict[str, int] | None = None
        self._view: DeviceView | None = None

    def left(self) -> dict[str, int]:
        """What shares may still take of each capacity, in nano units."""
        if self._left is None:
            used, capacity = self._used, self._traits.capacity
            self._left = {name: size - used.get(name, 0) for name, size in capacity.items()}
        return self._left

    def view(self, index: int) -> DeviceView:
        """The device as scorers see it, with this place among those of its node."""
        view = self._view
        if view is None or view.index != index:
            traits, use = self._traits, self.use
            view = self._view = DeviceView(
                id=traits.id,
                index=index,
                model=traits.model,
                nvlink_group=traits.nvlink_group,
                pcie_switch=traits.pcie_switch,
                pcie_root=traits.pcie_root,
                numa_node=traits.numa_node,
                shareable=traits.shareable,
                card=traits.card,
                part=traits.part,
                capacity=traits.capacity,
                used=self._used,
                shares=len(use.shares),
                exclusive=use.exclusive,
            )
        return view
