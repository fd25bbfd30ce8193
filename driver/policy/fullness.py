"""How full a device is, from 0 (nothing in use) to 1 (nothing more fits).

A shared device is as full as the capacity that is used most, because that one decides what still
fits. With weights it is their weighted mean instead, HAMi's slots, cores and memory.
"""

from collections.abc import Mapping, Sequence

from driver.model.names import MEMORY
from driver.policy.view import Choice, DeviceView, NodeView, Taken
from driver.policy.weights import Weights

# Fullness is compared in hundredths of a percent: finer differences are of no use to anybody, and
# what is equal leaves the decision to the lesser terms of a policy.
_DIGITS = 2

# How many shares a device is thought to have at the most: HAMi's default for `deviceSplitCount`.
SLOTS = 10


def percent(full: float) -> float:
    """The fullness in percent, as far as differences of it count."""
    return round(100 * full, _DIGITS)


def before(device: DeviceView, weights: Weights | None = None) -> float:
    """How full the device is without the choice."""
    if device.exclusive:
        return 1.0
    if not device.shares and not device.used:
        return 0.0
    return _level(device, device.used, device.shares, weights)


def after(view: NodeView, choice: Choice, weights: Weights | None = None) -> dict[int, float]:
    """How full each device of the choice is with it, by index."""
    devices, taken = view.devices, choice.taken
    full = {one.index: _with(devices[one.index], (one,), weights) for one in taken}
    if len(full) < len(taken):
        full = {
            index: _with(devices[index], [one for one in taken if one.index == index], weights)
            for index in full
        }
    return full


def of_cards(view: NodeView, choice: Choice, weights: Weights | None = None) -> dict[int, float]:
    """As `after`, but a part of a card is as full as its card: in itself it says nothing."""
    full = after(view, choice, weights)
    if not view.cards:
        return full
    taken: dict[str | None, int] = {}
    for one in choice.taken:
        device = view.devices[one.index]
        taken[device.card] = taken.get(device.card, 0) + device.capacity.get(MEMORY, 0)
    for index in full:
        device = view.devices[index]
        if device.part and device.card is not None:
            total, used = view.card_memory[device.card]
            full[index] = min(1.0, (used + taken[device.card]) / total) if total else 1.0
    return full


def _with(device: DeviceView, together: Sequence[Taken], weights: Weights | None) -> float:
    used = dict(device.used)
    for taken in together:
        if taken.exclusive:
            return 1.0
        for name, amount in taken.consumed.items():
            used[name] = used.get(name, 0) + amount
    return _level(device, used, device.shares + len(together), weights)


def _level(
    device: DeviceView, used: Mapping[str, int], shares: int, weights: Weights | None
) -> float:
    capacity = device.capacity
    if weights is not None:
        return weights.mean(device, used, min(1.0, shares / SLOTS))
    levels = [used.get(name, 0) / total for name, total in capacity.items() if total]
    return max(levels) if levels else min(1.0, shares / SLOTS)
