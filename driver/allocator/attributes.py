"""What value an attribute of a device has, in a form that constraints can compare.

Source of the rules: the constraints of Kubernetes' allocator. Knows nothing of requests.
"""

from collections.abc import Iterable

import msgspec

from driver.model.errors import AllocationError
from driver.model.ids import DeviceId
from driver.model.resourceslice import Device, DeviceAttribute

# An element is its kind and its value: the string "1", the number 1 and true are all different.
Element = tuple[str, str | int | bool]


class Values(msgspec.Struct, frozen=True):
    """The value of an attribute as a set: one element for a scalar; `listed` tells them apart.

    Versions compare as text, because semver has only one spelling of each.
    """

    elements: frozenset[Element]
    listed: bool = False


def find(device: Device, driver: str, name: str) -> DeviceAttribute | None:
    """The attribute with a full name: as published, else bare where the domain is the driver's."""
    published = device.attributes.get(name)
    if published is not None:
        return published
    domain, _, bare = name.partition("/")
    return device.attributes.get(bare) if bare and domain == driver else None


def values(attribute: DeviceAttribute, *, name: str, of: DeviceId) -> Values:
    """The attribute as a set. Raises `AllocationError` when it has no value of a known type."""
    scalars: Iterable[tuple[str, str | int | bool | None]] = (
        ("string", attribute.string),
        ("int", attribute.int_),
        ("bool", attribute.bool_),
        ("version", attribute.version),
    )
    for kind, value in scalars:
        if value is not None:
            return Values(frozenset(((kind, value),)))
    lists: Iterable[tuple[str, tuple[str | int | bool, ...] | None]] = (
        ("string", attribute.strings),
        ("int", attribute.ints),
        ("bool", attribute.bools),
        ("version", attribute.versions),
    )
    for kind, several in lists:
        if several is not None:
            return Values(frozenset((kind, value) for value in several), listed=True)
    raise AllocationError(
        f"device {of}: attribute {name}: unsupported attribute value: expected one of string, "
        "int, bool, version or a list of them; the driver that publishes it must be mended"
    )
