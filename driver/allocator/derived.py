"""The value of an attribute that a request computes from a device (KEP-6080)."""

from driver.allocator.attributes import Values
from driver.allocator.device import PooledDevice


def derive(expression: str, device: PooledDevice) -> Values | None:
    """The value of the expression for the device; raises `SelectorError` where it has none."""
    raise NotImplementedError
