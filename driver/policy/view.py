"""What a scorer sees: the devices of one node with their use, and one choice among them.

These types are the whole contract with scorers, our own and those that others add. They hold
plain numbers and labels; they know no claims, slices, selectors or cluster. Amounts are in nano
units, as `driver.model.quantity.Quantity.nano` is.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Protocol

import msgspec

from driver.model.allocation import Score
from driver.model.ids import DeviceId


class DeviceView(msgspec.Struct, frozen=True, kw_only=True):
    """One device as it stands before the choice.

    `index` is its place in `NodeView.devices`, which have the order in which the scheduler would
    try them. A scorer must rate two devices alike that differ in `id` and `index` only: the
    search tries just the first of them.
    """

    id: DeviceId
    index: int
    model: str = ""
    nvlink_group: str | None = None
    pcie_root: str | None = None
    numa_node: int | None = None
    shareable: bool = False
    capacity: Mapping[str, int] = {}
    used: Mapping[str, int] = {}
    shares: int = 0
    exclusive: bool = False

    @property
    def free(self) -> bool:
        """Nothing of it is in use."""
        return not (self.exclusive or self.shares or self.used)


class Domains(msgspec.Struct, frozen=True):
    """The devices of a node parted by something they share, such as an NVLink group.

    `of` gives the domain of each device, `size` how many devices a domain has, `free` how many of
    them are free. A device that shares with nobody is a domain of its own.
    """

    of: tuple[int, ...]
    size: tuple[int, ...]
    free: tuple[int, ...]


class NodeView(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One node: its name and its devices. What follows from them is worked out once.

    `cpu` is how many thousandths of a CPU are free before the choice; None where that is not known.
    """

    name: str
    devices: tuple[DeviceView, ...] = ()
    cpu: int | None = None

    @cached_property
    def nvlink_groups(self) -> Domains:
        """The devices by NVLink group."""
        return self._domains([device.nvlink_group for device in self.devices])

    @cached_property
    def pcie_roots(self) -> Domains:
        """The devices by PCIe root."""
        return self._domains([device.pcie_root for device in self.devices])

    @cached_property
    def numa_nodes(self) -> Domains:
        """The devices by NUMA node."""
        return self._domains([device.numa_node for device in self.devices])

    def _domains(self, labels: list[str | None] | list[int | None]) -> Domains:
        numbers: dict[object, int] = {}
        of: list[int] = []
        for index, label in enumerate(labels):
            # A tuple is no label, so it stands for the device alone.
            key: object = (index,) if label is None else label
            of.append(numbers.setdefault(key, len(numbers)))
        size, free = [0] * len(numbers), [0] * len(numbers)
        for device, domain in zip(self.devices, of, strict=True):
            size[domain] += 1
            free[domain] += device.free
        return Domains(tuple(of), tuple(size), tuple(free))


class Taken(msgspec.Struct, frozen=True):
    """One device of a choice: its `index`, what is taken of it, and whether that is all of it."""

    index: int
    consumed: Mapping[str, int] = {}
    exclusive: bool = True


class Choice(msgspec.Struct, frozen=True):
    """The devices that a set of claims would get; a shareable device may be in it twice.

    `cpu` is how many thousandths of a CPU are taken with them, where the view knows of CPU.
    """

    taken: tuple[Taken, ...] = ()
    cpu: int = 0


class Scorer(Protocol):
    """Rates one choice on one node; more is better.

    Must be a function of its arguments alone and must count the choice as made ("request
    included"). Works for both axes: over the choices of a node, and over nodes.
    """

    def score(self, view: NodeView, choice: Choice) -> Score:
        """How good `choice` is on `view`, as terms that add up."""
        ...
