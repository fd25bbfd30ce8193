"""docs/reference/taints.md: the taints that keep claims away from devices."""

from collections.abc import Iterator, Mapping

import msgspec

from driver.model import names
from driver.node.health import card
from hack.reference.markdown import code, page, prose, table


class Taint(msgspec.Struct, frozen=True, kw_only=True):
    """One taint: who sets it where, why, and when it goes."""

    # Below the driver's name, or whole where it has a domain.
    key: str
    effect: str
    where: str
    why: str
    ends: str

    def written(self) -> str:
        """The whole key."""
        return self.key if "/" in self.key else f"{names.DRIVER}/{self.key}"


ALL = (
    Taint(
        key=names.UNHEALTHY_TAINT,
        effect="NoSchedule, or NoExecute (`node.settings.unhealthyEffect`)",
        where="the node plugin, in its slices; the value is the worst reason",
        why="The card is ill or does not answer.",
        ends="By itself when the card is well: docs/health.md.",
    ),
    Taint(
        key=names.CORDONED_TAINT,
        effect="NoSchedule",
        where=f"the node plugin, in its slices, for what the Node's annotation `{names.CORDONED}` "
        "names",
        why="Somebody has closed the card.",
        ends="`kubectl quadrant uncordon NODE/DEVICE`.",
    ),
    Taint(
        key=names.OCCUPIED_TAINT,
        effect="NoSchedule",
        where="the node plugin, in its slices",
        why="A claim that the cluster has given up is in use on the node: its pod was deleted by "
        "force.",
        ends="By itself when the kubelet has ended its containers: "
        "docs/operate.md#pods-deleted-by-force.",
    ),
    Taint(
        key=names.HELD,
        effect="NoSchedule",
        where=f"the controller, by a DeviceTaintRule with the label `{names.HELD}`",
        why="The scheduler believes the device free though a claim holds it.",
        ends="By itself when that claim is gone.",
    ),
    Taint(
        key=names.HELD,
        effect="None",
        where="the controller, by the DeviceTaintRule `quadrant-wake`",
        why="Pods wait beside this free device, and nothing else makes the scheduler look: "
        "docs/troubleshooting.md#a-pod-stays-in-pending.",
        ends="By itself within seconds.",
    ),
)
# Values of the first one: what was seen.
REASONS: Mapping[str, str] = {
    card.LOST: "the card does not answer",
    "needs-ACTION": "the card itself asks for it, such as `needs-gpu-reset`",
    card.REMAP: "a bad row of memory could not be replaced",
    card.ECC: "uncorrected memory errors since the last reset",
    "xid-N": "the driver has reported XID N",
    card.UNANSWERED: "NVML as a whole does not answer; never NoExecute",
}


def text() -> str:
    """The page."""
    return page("Taints", _lines())


def _lines() -> Iterator[str]:
    yield from prose(
        """
        Device taints (on by default from Kubernetes 1.36, before with the gate
        `DRADeviceTaints`). A claim goes to such a device only if a request tolerates the taint;
        an allocation that is there stays, except under NoExecute. `kubectl quadrant matrix` and
        the metric `quadrant_device_taint` show them.
        """
    )
    yield from table(
        ("key", "effect", "set by", "why", "ends"),
        ((code(one.written()), one.effect, one.where, one.why, one.ends) for one in ALL),
    )
    yield f"Keys begin with the driver's name, except for `{names.HELD}`."
    yield ""
    yield f"Values of `{ALL[0].written()}`, the worst first:"
    yield from table(("value", "what was seen"), ((code(k), v) for k, v in REASONS.items()))
    yield "[Health of cards](../health.md) says what ends each."
