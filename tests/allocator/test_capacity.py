"""How much a request takes, by the request policy of the device."""

import pytest

from driver.allocator.capacity import CapacityError, consumption
from driver.model.quantity import parse
from driver.model.resourceslice import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceCapacity,
)


def _range(low: str, high: str | None = None, step: str | None = None) -> CapacityRequestPolicy:
    return CapacityRequestPolicy(
        default=parse(low),
        valid_range=CapacityRequestPolicyRange(
            min=parse(low), max=parse(high) if high else None, step=parse(step) if step else None
        ),
    )


def _values(*valid: str) -> CapacityRequestPolicy:
    return CapacityRequestPolicy(default=parse(valid[0]), valid_values=tuple(map(parse, valid)))


def _taken(
    wanted: str | None, policy: CapacityRequestPolicy | None, *, fractional: bool = True
) -> str | None:
    offered = DeviceCapacity(value=parse("16Gi"), request_policy=policy)
    requested = {} if wanted is None else {"memory": parse(wanted)}
    taken = consumption({"memory": offered}, requested, fractional=fractional)
    return None if taken is None else str(taken["memory"])


@pytest.mark.parametrize(
    ("wanted", "policy", "taken"),
    [
        pytest.param("3Gi", None, "3Gi", id="no policy: as asked"),
        pytest.param(None, None, "16Gi", id="nothing asked: all of it"),
        pytest.param(None, _range("1Gi"), "1Gi", id="nothing asked: the default"),
        pytest.param("1Mi", _range("1Gi", step="1Gi"), "1Gi", id="below the least"),
        pytest.param("1025Mi", _range("1Gi", step="1Gi"), "2Gi", id="up to the next step"),
        pytest.param("1025Mi", _range("1Gi"), "1025Mi", id="no step: as asked"),
        pytest.param("9Gi", _range("1Gi", "8Gi", "1Gi"), None, id="beyond the most"),
        pytest.param("17Gi", None, None, id="more than there is"),
        pytest.param("3Gi", _values("2Gi", "4Gi"), "4Gi", id="next valid value"),
        pytest.param("5Gi", _values("2Gi", "4Gi"), None, id="beyond all valid values"),
    ],
)
def test_what_is_taken(
    wanted: str | None, policy: CapacityRequestPolicy | None, taken: str | None
) -> None:
    """None means that the device cannot serve the request."""
    assert _taken(wanted, policy) == taken


def test_fractions_need_the_feature() -> None:
    """Without it a range counts in whole units, rounded up."""
    policy = _range("200m", "1", "100m")
    assert _taken("250m", policy) == "300m"
    assert _taken("250m", policy, fractional=False) == "1"


def test_a_default_outside_its_own_range_is_accepted() -> None:
    """Kubernetes does so too."""
    policy = CapacityRequestPolicy(
        default=parse("3"),
        valid_range=CapacityRequestPolicyRange(min=parse("2"), max=parse("4"), step=parse("2")),
    )
    assert _taken(None, policy) == "3"


def test_an_unknown_capacity_skips_the_device() -> None:
    """Another device may have it."""
    assert consumption({}, {"memory": parse("1")}, fractional=True) is None


@pytest.mark.parametrize(
    ("wanted", "fractional"),
    [("9223372036854775807", False), ("18446744073709551616", False), ("1500u", True)],
)
def test_what_cannot_be_represented_stops_everything(wanted: str, *, fractional: bool) -> None:
    """Trying the next device would only repeat it."""
    with pytest.raises(CapacityError, match="cannot be represented"):
        _taken(
            wanted,
            _range("1m" if fractional else "2", step="2m" if fractional else "2"),
            fractional=fractional,
        )


def test_a_negative_amount_stops_everything() -> None:
    """It would count as room for others."""
    with pytest.raises(CapacityError, match="negative"):
        _taken("-1", None)
