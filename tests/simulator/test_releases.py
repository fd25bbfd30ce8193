"""What each release of Kubernetes serves."""

import pytest

from driver.simulator.releases import UnknownReleaseError, release


@pytest.mark.parametrize(
    ("name", "shares", "extended", "taints"),
    [
        ("1.34.4", False, False, False),
        ("1.35", False, False, False),
        ("v1.36", True, True, True),
        ("1.37", True, True, True),
    ],
)
def test_default_gates(name: str, *, shares: bool, extended: bool, taints: bool) -> None:
    """Shares of cards and extended resources are served from 1.36 on."""
    found = release(name)
    assert found.features.consumable_capacity is shares
    assert found.features.device_taints is taints
    assert found.extended_resources is extended


def test_unknown_releases_are_refused() -> None:
    """The sentence lists what is known."""
    with pytest.raises(UnknownReleaseError, match=r"1\.34, 1\.35, 1\.36, 1\.37"):
        release("1.12")
