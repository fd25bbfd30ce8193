"""How much of a node is in use with a choice made: devices, slots and capacity, each 0 to 1."""

from driver.policy import fullness
from driver.policy.view import Choice, NodeView
from driver.policy.weights import Weights


def node_use(view: NodeView, choice: Choice, weights: Weights | None) -> dict[str, float]:
    """The three shares by name; a node without devices is in no use.

    Slots count allocations, so that a node with many small shares is fuller than one with few
    that add up to the same capacity.
    """
    count = len(view.devices)
    if not count:
        return {"devices": 0.0, "slots": 0.0, "capacity": 0.0}
    full = fullness.after(view, choice, weights)
    in_use = sum(not device.free or device.index in full for device in view.devices)
    allocations = len(choice.taken) + sum(
        device.shares + device.exclusive for device in view.devices
    )
    capacity = sum(
        full.get(device.index, fullness.before(device, weights)) for device in view.devices
    )
    return {
        "devices": in_use / count,
        "slots": min(1.0, allocations / (fullness.SLOTS * count)),
        "capacity": capacity / count,
    }
