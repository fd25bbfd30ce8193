"""Which requests are usual: what a node's free capacity must be good for."""

from collections.abc import Mapping

import msgspec

from driver.policy.view import DeviceView


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of request and how often it comes.

    It wants `count` devices of one of `models` (none named: of any), of each the `amounts` in nano
    units, or all of it where there are none, and `cpu` thousandths of a CPU. With a count of 0 it
    wants no device at all.
    """

    weight: float
    count: int = 1
    amounts: Mapping[str, int] = {}
    models: frozenset[str] = frozenset()
    cpu: int = 0

    def share_of(self, device: DeviceView) -> float | None:
        """How much of the device one of its devices takes, 0 to 1; None if it cannot be one."""
        if self.models and device.model not in self.models:
            return None
        return self.part_of(device)

    def part_of(self, device: DeviceView) -> float | None:
        """The same whatever the model."""
        if not self.amounts or not device.shareable:
            return 1.0
        shares = [
            amount / device.capacity[name] if device.capacity.get(name) else None
            for name, amount in self.amounts.items()
        ]
        known = [share for share in shares if share is not None]
        fits = len(known) == len(shares) and max(known) <= 1
        return max(known) if fits else None


class Mix(msgspec.Struct, frozen=True):
    """The usual requests; their weights need not add up to one."""

    shapes: tuple[Shape, ...]


# Where nothing has been seen yet: whole devices, few and many.
UNKNOWN = Mix(tuple(Shape(weight=1.0, count=count) for count in (1, 2, 4, 8)))
