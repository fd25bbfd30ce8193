"""How much slots, cores and memory count against each other (`quadrant.dev/scoring-weights`)."""

from collections.abc import Mapping

import msgspec

from driver.model.errors import QuadrantError
from driver.model.names import CORES, MEMORY
from driver.policy.view import DeviceView


class WeightsError(QuadrantError):
    """Weights that cannot be read; the text says what was expected."""


class Weights(msgspec.Struct, frozen=True):
    """Weights of the three things that a device has; only their ratios matter."""

    slot: float = 1.0
    core: float = 1.0
    memory: float = 1.0

    def mean(self, device: DeviceView, used: Mapping[str, int], slots: float) -> float:
        """The weighted mean of how full slots, cores and memory are; what it lacks is left out."""
        levels = [(self.slot, slots)]
        for weight, name in ((self.core, CORES), (self.memory, MEMORY)):
            total = device.capacity.get(name)
            if total:
                levels.append((weight, used.get(name, 0) / total))
        whole = sum(weight for weight, _ in levels)
        return sum(weight * level for weight, level in levels) / whole if whole else 0.0


def parse(text: str) -> Weights | None:
    """Read "slot=1,core=1,memory=3"; what is not named weighs 1. Raises `WeightsError`.

    None where nothing is said: then nothing is weighed (see `driver.policy.fullness`).
    """
    found: dict[str, float] = {}
    if not text.strip():
        return None
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = part.partition("=")
        try:
            weight = float(value)
        except ValueError:
            weight = -1.0
        if name.strip() not in {"slot", "core", "memory"} or not 0 <= weight < float("inf"):
            raise WeightsError(
                f"scoring weight {part!r} cannot be read: expected slot, core or memory with a "
                'number of zero or more, such as "slot=1,core=1,memory=3"'
            )
        found[name.strip()] = weight
    if not any({"slot": 1.0, "core": 1.0, "memory": 1.0, **found}.values()):
        raise WeightsError(
            f"scoring weights {text!r} are all zero, so that nothing would count: expected at "
            "least one above zero"
        )
    return Weights(**found)
