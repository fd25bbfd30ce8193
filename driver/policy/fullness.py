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
    if view.cards:
        parts = [index for index in full if view.devices[index].part]
        full |= {index: _card_after(view, choice, index) for index in parts}
    return full


def _card_after(view: NodeView, choice: Choice, part: int) -> float:
    """How much of the memory of a part's card is in use with the choice, of whichever part."""
    members = view.cards[view.devices[part].card or ""]
    devices = [view.devices[index] for index in members]
    whole = sum(_memory(one) for one in devices if not one.part)
    total = whole or sum(_memory(one) for one in devices)
    used = sum(_memory(one) if one.exclusive else one.used.get(MEMORY, 0) for one in devices)
    used += sum(_memory(view.devices[one.index]) for one in choice.taken if one.index in members)
    return min(1.0, used / total) if total else 1.0


def _memory(device: DeviceView) -> int:
    return device.capacity.get(MEMORY, 0)


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
