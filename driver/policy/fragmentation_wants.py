"""What the usual requests want of a node with devices of one make, in plain numbers.

A make is all that tells devices apart for a request: model, capacity, whether it can be shared.
Everything else about fragmentation works on these numbers and on rooms.
"""

import math
from typing import NamedTuple

from driver.policy.mix import Mix, Shape
from driver.policy.view import DeviceView

WHOLE = 1000
# More CPU than any node has: for a node of which it is not known, and for what never fits.
UNBOUNDED = 1 << 40
_EPSILON = 1e-6


class Room(NamedTuple):
    """What is free of a node: thousandths of a CPU, and of each device, ascending."""

    cpu: int
    free: tuple[int, ...]


class Want(NamedTuple):
    """One usual request: so many devices, `milli` of each, and thousandths of a CPU.

    `number` is its share of all requests, `weight` the mean of that and of its share of all
    capacity that is asked for: few requests for many devices matter as much as many for few. One
    that cannot run on devices of this make wants more CPU than there is.
    """

    number: float
    weight: float
    cpu: int
    devices: int
    milli: int

    @property
    def runs(self) -> bool:
        """Whether such a node can ever serve it."""
        return self.cpu <= UNBOUNDED


def wants(mix: Mix, device: DeviceView) -> tuple[Want, ...]:
    """The mix, as a node sees it whose devices are like this one; numbers and weights add to 1."""
    parts = [_part(shape, device) for shape in mix.shapes]
    number = sum(shape.weight for shape in mix.shapes)
    capacity = sum(
        shape.weight * shape.count * part for shape, part in zip(mix.shapes, parts, strict=True)
    )
    if not number:
        return ()
    return tuple(
        _want(
            shape,
            device,
            number=shape.weight / number,
            capacity=shape.weight * shape.count * part / capacity if capacity else 0.0,
        )
        for shape, part in zip(mix.shapes, parts, strict=True)
    )


def make(device: DeviceView) -> str:
    """The same for devices of one make."""
    capacity = ",".join(f"{name}={device.capacity[name]}" for name in sorted(device.capacity))
    return f"{device.model}|{device.shareable}|{capacity}"


def same_make(one: DeviceView, other: DeviceView) -> bool:
    """The same as `make(one) == make(other)`, without the words."""
    return (
        one.model == other.model
        and one.shareable == other.shareable
        and one.capacity == other.capacity
    )


def milli_free(full: float) -> int:
    """How much is free of a device that is so full, rounded down."""
    return math.floor(WHOLE * (1 - full) + _EPSILON)


def _part(shape: Shape, device: DeviceView) -> float:
    """How much capacity it asks for; more than there is of this make counts as all of it."""
    part = shape.part_of(device)
    return 1.0 if part is None else part


def _want(shape: Shape, device: DeviceView, *, number: float, capacity: float) -> Want:
    share = shape.share_of(device) if shape.count else 0.0
    return Want(
        number=number,
        weight=(number + capacity) / 2,
        cpu=UNBOUNDED + 1 if share is None else shape.cpu,
        devices=shape.count,
        milli=0 if share is None else math.ceil(WHOLE * share - _EPSILON),
    )
