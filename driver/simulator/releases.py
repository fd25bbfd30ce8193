"""What a release of Kubernetes serves with its default feature gates.

Source: `pkg/features/kube_features.go` of each release, as far as DRA is concerned.
"""

import msgspec

from driver.model.allocation import Features
from driver.model.errors import QuadrantError


class UnknownReleaseError(QuadrantError):
    """A release that nothing is known about; the text lists the known ones."""


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """One release: the allocator's features, and whether extended resources become claims."""

    name: str
    features: Features
    extended_resources: bool


_WHOLE_DEVICES = Features(admin_access=True, prioritized_list=True)
_SHARES = Features(
    admin_access=True,
    prioritized_list=True,
    device_taints=True,
    partitionable_devices=True,
    device_binding_and_status=True,
    consumable_capacity=True,
)
_FRACTIONS = Features(
    admin_access=True,
    prioritized_list=True,
    device_taints=True,
    partitionable_devices=True,
    device_binding_and_status=True,
    consumable_capacity=True,
    fractional_capacity_range=True,
)
_RELEASES = {
    release.name: release
    for release in (
        Release(name="1.34", features=_WHOLE_DEVICES, extended_resources=False),
        Release(name="1.35", features=_WHOLE_DEVICES, extended_resources=False),
        Release(name="1.36", features=_SHARES, extended_resources=True),
        Release(name="1.37", features=_FRACTIONS, extended_resources=True),
    )
}
LATEST = "1.37"


def release(name: str) -> Release:
    """The release called `name` ("1.37", "v1.37" or "1.37.2"); raises `UnknownReleaseError`."""
    minor = ".".join(name.removeprefix("v").split(".")[:2])
    if minor not in _RELEASES:
        raise UnknownReleaseError(
            f"Kubernetes {name!r} is not known here; known are {', '.join(_RELEASES)}"
        )
    return _RELEASES[minor]
