"""How much of each capacity a request takes from a device, by that device's request policies.

Source of the rules: KEP-5075 and Kubernetes' allocator, fractional ranges (KEP-5075, beta in
1.37) included. Amounts are nano units. Knows nothing of what is in use.
"""

from collections.abc import Mapping

from driver.model.errors import AllocationError
from driver.model.quantity import NANO, Quantity
from driver.model.resourceslice import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceCapacity,
)

_INT64_MAX = 2**63 - 1
_MILLI = NANO // 1000


class CapacityError(AllocationError):
    """A requested amount cannot be represented, or is negative: allocation stops."""


class Amounts:
    """What one request asks of capacities; `key` is equal for those that ask for the same.

    The key holds how amounts are written as well, because results are written in that way.
    """

    __slots__ = ("key", "requested")

    def __init__(self, requested: Mapping[str, Quantity]) -> None:
        self.requested = requested
        self.key = tuple((name, one.nano, one.format) for name, one in requested.items())


class Portion:
    """What a request takes of one device: the amounts, and the same in nano units.

    `key` is equal for portions that are the same amounts.
    """

    __slots__ = ("amounts", "key", "nanos")

    def __init__(self, amounts: Mapping[str, Quantity]) -> None:
        self.amounts = amounts
        self.nanos = {name: amount.nano for name, amount in amounts.items()}
        self.key = tuple(self.nanos.items())


NOTHING = Portion({})


def consumption(
    capacity: Mapping[str, DeviceCapacity],
    requested: Mapping[str, Quantity],
    *,
    fractional: bool,
) -> dict[str, Quantity] | None:
    """What the request takes of each capacity; None when the device cannot serve it even empty.

    Nothing requested of a capacity takes its policy's default, else all of it. Raises
    `CapacityError` before any "cannot serve", so that the outcome depends on no order.
    """
    if any(name not in capacity for name in requested):
        return None
    taken = {
        name: _taken(name, requested.get(name), offered, fractional=fractional)
        for name, offered in capacity.items()
    }
    for name, amount in taken.items():
        offered = capacity[name]
        if offered.value < amount or _violates(
            amount, offered.request_policy, fractional=fractional
        ):
            return None
    return taken


def _taken(
    name: str, wanted: Quantity | None, offered: DeviceCapacity, *, fractional: bool
) -> Quantity:
    policy = offered.request_policy
    amount = offered.value if wanted is None else wanted
    if policy is not None and wanted is None:
        amount = policy.default if policy.default is not None else offered.value
    elif policy is not None and wanted is not None:
        amount = _rounded(name, wanted, policy, fractional=fractional)
    if amount.nano < 0:
        raise CapacityError(
            f"capacity {name}: capacity value {amount} is negative: expected zero or more"
        )
    return amount


def _rounded(
    name: str, wanted: Quantity, policy: CapacityRequestPolicy, *, fractional: bool
) -> Quantity:
    legal = policy.valid_range
    if legal is not None and legal.min is not None:
        return _rounded_to_step(name, wanted, legal, fractional=fractional)
    return next((valid for valid in policy.valid_values if wanted <= valid), wanted)


def _rounded_to_step(
    name: str, wanted: Quantity, legal: CapacityRequestPolicyRange, *, fractional: bool
) -> Quantity:
    if legal.min is None or wanted < legal.min:
        return legal.min or wanted
    if legal.step is None:
        return wanted
    unit = _unit(legal, fractional=fractional)
    least, step, units = (_ceil(q.nano, unit) for q in (legal.min, legal.step, wanted))
    if fractional and unit == _MILLI and wanted.nano % _MILLI:
        raise CapacityError(_unrepresentable(name, wanted, "it is no whole number of milli units"))
    rounded = least + -(-(units - least) // step) * step
    if units > _INT64_MAX or rounded > _INT64_MAX:
        raise CapacityError(_unrepresentable(name, wanted, f"it passes {_INT64_MAX} units"))
    return Quantity(rounded * unit, legal.step.format)


def _unrepresentable(name: str, wanted: Quantity, why: str) -> str:
    return (
        f"capacity {name}: request {wanted} cannot be represented in the range arithmetic of "
        f"the device: {why}; request less"
    )


def _violates(amount: Quantity, policy: CapacityRequestPolicy | None, *, fractional: bool) -> bool:
    if policy is None or (policy.default is not None and amount == policy.default):
        return False
    legal = policy.valid_range
    if legal is None:
        return bool(policy.valid_values) and amount not in policy.valid_values
    if legal.max is not None and legal.max < amount:
        return True
    if legal.step is None:
        return False
    unit = _unit(legal, fractional=fractional)
    least = _ceil(legal.min.nano, unit) if legal.min is not None else 0
    return (_ceil(amount.nano, unit) - least) % _ceil(legal.step.nano, unit) != 0


def _unit(legal: CapacityRequestPolicyRange, *, fractional: bool) -> int:
    """Nano units that a range counts in: milli where the cluster can and the range fits."""
    bounds = [one.nano for one in (legal.min, legal.max, legal.step) if one is not None]
    fits = all(nano % _MILLI == 0 and nano // _MILLI <= _INT64_MAX for nano in bounds)
    return _MILLI if fractional and fits else NANO


def _ceil(nano: int, unit: int) -> int:
    return -(-nano // unit)
