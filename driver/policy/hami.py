"""hami: the score that HAMi's documentation gives, for people who compare.

Source: HAMi v2.10 and its documentation. A device scores
10 x (w_slot (requested + used) / slots + w_core (...) / cores + w_memory (...) / memory), a node
10 x the same three ratios summed over its devices; binpack takes the highest, spread the lowest.
Two differences to HAMi's code: the request is counted, as the documentation says (the code adds it
only where the request's type equals the card's, which for real NVIDIA cards appears never to be so,
and never for nodes), and ties end on the order of devices and on the name of the node.
"""

from collections.abc import Iterable, Mapping

from driver.model.allocation import Score, Term
from driver.model.names import CORES, MEMORY
from driver.policy.fullness import SLOTS
from driver.policy.view import Choice, DeviceView, NodeView
from driver.policy.weights import Weights

_WHOLE_CORES = 100 * 10**9


class Hami:
    """HAMi's device or node score; `sign` is 1 for binpack and -1 for spread."""

    def __init__(self, weights: Weights | None, *, sign: int, node: bool) -> None:
        self._weights = weights or Weights()
        self._sign = sign
        self._node = node

    def score(self, view: NodeView, choice: Choice) -> Score:
        """The documented sum, as its three terms."""
        chosen = sorted({taken.index for taken in choice.taken})
        devices = view.devices if self._node else [view.devices[index] for index in chosen]
        ratios = _ratios(devices, choice)
        weights = Weights() if self._node else self._weights
        return Score(
            tuple(
                Term(f"{name} in use", self._sign * 10 * weight * ratios[name])
                for name, weight in (
                    ("slots", weights.slot),
                    ("cores", weights.core),
                    ("memory", weights.memory),
                )
            )
        )


def _ratios(devices: Iterable[DeviceView], choice: Choice) -> Mapping[str, float]:
    used = {"slots": 0, "cores": 0, "memory": 0}
    total = dict(used)
    for device in devices:
        cores = device.capacity.get(CORES, _WHOLE_CORES)
        memory = device.capacity.get(MEMORY, 0)
        total["slots"] += SLOTS
        total["cores"] += cores
        total["memory"] += memory
        used["slots"] += device.shares + device.exclusive
        used["cores"] += cores if device.exclusive else device.used.get(CORES, 0)
        used["memory"] += memory if device.exclusive else device.used.get(MEMORY, 0)
        for taken in choice.taken:
            if taken.index == device.index:
                used["slots"] += 1
                used["cores"] += cores if taken.exclusive else taken.consumed.get(CORES, 0)
                used["memory"] += memory if taken.exclusive else taken.consumed.get(MEMORY, 0)
    # HAMi scores zero when any total is zero.
    if not all(total.values()):
        return dict.fromkeys(total, 0.0)
    return {name: used[name] / total[name] for name in total}
