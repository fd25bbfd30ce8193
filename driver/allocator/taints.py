"""Whether the taints of a device keep a request away.

Source of the rule: `k8s.io/dynamic-resource-allocation/resourceclaim` (ToleratesTaint). Effects
other than NoSchedule and NoExecute, unknown ones included, never keep anybody away.
"""

from collections.abc import Iterable

from driver.model.api import Toleration
from driver.model.resourceslice import DeviceTaint

_HARD = frozenset({"NoSchedule", "NoExecute"})


def repelling(taints: Iterable[DeviceTaint], tolerations: tuple[Toleration, ...]) -> bool:
    """Whether one of the taints is hard and not tolerated."""
    return any(
        taint.effect in _HARD and not any(_tolerates(one, taint) for one in tolerations)
        for taint in taints
    )


def _tolerates(toleration: Toleration, taint: DeviceTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in {"", "Equal"} and toleration.value == taint.value
