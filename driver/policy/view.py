"""What a scorer sees: the devices of one node with their use, and one choice among them.

These types are the whole contract with scorers, our own and those that others add. They hold
plain numbers and labels; they know no claims, slices, selectors or cluster. Amounts are in nano
units, as `driver.model.quantity.Quantity.nano` is.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Protocol

import msgspec

from driver.model.allocation import Score
from driver.model.ids import DeviceId
from driver.model.names import MEMORY


class DeviceView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One device as it stands before the choice.

    `index` is its place in `NodeView.devices`, which have the order in which the scheduler would
    try them. A scorer must rate two devices alike that differ only in `id`, in `index`, and in the
    name of an NVLink group, PCIe switch or PCIe root that no other device of the node is in: the
    search tries just the first of them.
    """

    id: DeviceId
    index: int
    model: str = ""
    nvlink_group: str | None = None
    pcie_switch: str | None = None
    pcie_root: str | None = None
    numa_node: int | None = None
    shareable: bool = False
    # UUID of the card that the device is a part of, or is itself and others are parts of (MIG).
    card: str | None = None
    part: bool = False
    capacity: Mapping[str, int] = {}
    used: Mapping[str, int] = {}
    shares: int = 0
    exclusive: bool = False

    @property
    def free(self) -> bool:
        """Nothing of it is in use."""
        return not (self.exclusive or self.shares or self.used)


class Domains(msgspec.Struct, frozen=True, gc=False):
    """The devices of a node parted by something they share, such as an NVLink group.

    `of` gives the domain of each device, `size` how many devices a domain has, `free` how many of
    them are free. A device that shares with nobody is a domain of its own.
    """

    of: tuple[int, ...]
    size: tuple[int, ...]
    free: tuple[int, ...]


class Partition(msgspec.Struct, frozen=True, gc=False):
    """Domains, whatever is in use: the domain of each device, and how many devices each has."""

    of: tuple[int, ...]
    size: tuple[int, ...]

    @classmethod
    def by(cls, labels: Sequence[str | int | None]) -> "Partition":
        """Devices with the same label are in the same domain; without one they are alone."""
        numbers: dict[object, int] = {}
        of: list[int] = []
        for index, label in enumerate(labels):
            # A tuple is no label, so it stands for the device alone.
            key: object = (index,) if label is None else label
            of.append(numbers.setdefault(key, len(numbers)))
        size = [0] * len(numbers)
        for domain in of:
            size[domain] += 1
        return cls(tuple(of), tuple(size))

    def with_free(self, devices: Sequence[DeviceView]) -> Domains:
        """The domains, with how many of these devices are free."""
        free = [0] * len(self.size)
        for domain, device in zip(self.of, devices, strict=True):
            free[domain] += device.free
        return Domains(self.of, self.size, tuple(free))


class Linked(Protocol):
    """Where a device is connected; None where it is not, or where that is not known."""

    @property
    def nvlink_group(self) -> str | None:
        """The devices that it reaches over NVLink."""

    @property
    def pcie_switch(self) -> str | None:
        """The PCIe switch that it is plugged into."""

    @property
    def pcie_root(self) -> str | None:
        """The PCIe root complex that it is below."""

    @property
    def numa_node(self) -> int | None:
        """The NUMA node that it is close to."""

    @property
    def card(self) -> str | None:
        """The card that it is a part of, or that others are parts of."""


class Layout(msgspec.Struct, frozen=True, gc=False):
    """How the devices of a node are connected, which no use of them changes.

    `cards` has the devices of every card that there are parts of, by the card's UUID.
    """

    nvlink_groups: Partition
    pcie_switches: Partition
    pcie_roots: Partition
    numa_nodes: Partition
    cards: Mapping[str, tuple[int, ...]] = {}

    @classmethod
    def of(cls, devices: Sequence[Linked]) -> "Layout":
        """The layout of these devices, in their order."""
        return cls(
            Partition.by([device.nvlink_group for device in devices]),
            Partition.by([device.pcie_switch for device in devices]),
            Partition.by([device.pcie_root for device in devices]),
            Partition.by([device.numa_node for device in devices]),
            _cards(devices),
        )


def _cards(devices: Sequence[Linked]) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for index, device in enumerate(devices):
        if device.card is not None:
            found[device.card] = (*found.get(device.card, ()), index)
    return found


def _memory(devices: Sequence[DeviceView]) -> tuple[int, int]:
    sizes = [device.capacity.get(MEMORY, 0) for device in devices]
    whole = sum(size for size, device in zip(sizes, devices, strict=True) if not device.part)
    used = (
        size if device.exclusive else device.used.get(MEMORY, 0)
        for size, device in zip(sizes, devices, strict=True)
    )
    return whole or sum(sizes), sum(used)


class NodeView(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One node: its name and its devices. What follows from them is worked out once.

    `cpu` is how many thousandths of a CPU are free before the choice; None where that is not known.
    `layout` is that of the devices, where it is known already.
    """

    name: str
    devices: tuple[DeviceView, ...] = ()
    cpu: int | None = None
    layout: Layout | None = None

    @cached_property
    def nvlink_groups(self) -> Domains:
        """The devices by NVLink group."""
        return self._layout.nvlink_groups.with_free(self.devices)

    @cached_property
    def pcie_switches(self) -> Domains:
        """The devices by PCIe switch."""
        return self._layout.pcie_switches.with_free(self.devices)

    @cached_property
    def pcie_roots(self) -> Domains:
        """The devices by PCIe root."""
        return self._layout.pcie_roots.with_free(self.devices)

    @cached_property
    def numa_nodes(self) -> Domains:
        """The devices by NUMA node."""
        return self._layout.numa_nodes.with_free(self.devices)

    @property
    def cards(self) -> Mapping[str, tuple[int, ...]]:
        """The devices of every card that there are parts of, by the card's UUID."""
        return self._layout.cards

    @cached_property
    def card_memory(self) -> dict[str, tuple[int, int]]:
        """How much memory each of these cards has, and how much of it is in use in any form.

        A card that is offered in parts only has the memory of all of them.
        """
        return {
            card: _memory([self.devices[index] for index in members])
            for card, members in self.cards.items()
        }

    @cached_property
    def _layout(self) -> Layout:
        return self.layout or Layout.of(self.devices)


class Taken(msgspec.Struct, frozen=True, gc=False):
    """One device of a choice: its `index`, what is taken of it, and whether that is all of it."""

    index: int
    consumed: Mapping[str, int] = {}
    exclusive: bool = True


class Choice(msgspec.Struct, frozen=True, gc=False):
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
