"""Pods that the scheduler has put aside, and that nothing wakes though there is a place for them.

A pod that found no free device is tried again on an event: a claim is released, a slice changes.
But a device also comes free without one. While a pod is being bound its devices count as taken.
When that fails, as for a pod that is deleted meanwhile, they are free again, and nobody is told;
for the vanished claim of an extended resource that takes 120 s. The scheduler looks by itself only
after five minutes (kube-scheduler 1.37.2, with or without us).
"""

import msgspec

from driver.controller.cluster import Cluster
from driver.controller.nominations import Nomination
from driver.model.core import Pod
from driver.model.ids import DeviceId

# How long a pod has had a node by our word when the scheduler is woken for it: its longest back-off
# is 10 s, and what vanished is given up after 120 s.
WAKE_AFTER_S = (15.0, 135.0)
# All pods that wait for devices are tried again then: that is work, if there are many.
AT_MOST_EVERY_S = 30.0


class _Sleep(msgspec.Struct):
    """Since when a pod could have been bound, one of its devices, and how often it was woken."""

    since: float
    device: DeviceId
    woken: int = 0

    def is_due(self, now: float) -> bool:
        """Whether it has slept long enough to be woken (again)."""
        return self.woken < len(WAKE_AFTER_S) and now - self.since >= WAKE_AFTER_S[self.woken]


class Sleepers:
    """Remembers who sleeps since when; `due` is to be asked every few seconds."""

    def __init__(self) -> None:
        self._asleep: dict[str, _Sleep] = {}
        self._last = float("-inf")

    def due(self, cluster: Cluster, now: float) -> DeviceId | None:
        """A device that is free for a pod that sleeps; None when nobody is to be woken now.

        Every pod is counted as woken that is due: one event wakes all.
        """
        self._look(cluster, now)
        due = [sleep for sleep in self._asleep.values() if sleep.is_due(now)]
        if not due or now - self._last < AT_MOST_EVERY_S:
            return None
        self._last = now
        for sleep in due:
            sleep.woken += 1
        return due[0].device

    def _look(self, cluster: Cluster, now: float) -> None:
        before, self._asleep = self._asleep, {}
        for uid, pod in cluster.pods.items():
            if not _put_aside(pod):
                continue
            sleep = before.get(uid)
            nomination = cluster.nominations.get(uid)
            if nomination is None and (sleep is None or not sleep.woken):
                # It fits nowhere, or the scheduler is awake and would not have our node.
                continue
            device = _promised(nomination, cluster.driver) if nomination is not None else None
            if sleep is None and device is not None:
                sleep = _Sleep(now, device)
            if sleep is not None:
                sleep.device = device or sleep.device
                self._asleep[uid] = sleep


def _put_aside(pod: Pod) -> bool:
    return not (pod.finished or pod.spec.node_name or pod.metadata.deletion_timestamp) and any(
        condition.type == "PodScheduled" and condition.reason == "Unschedulable"
        for condition in pod.status.conditions
    )


def _promised(nomination: Nomination, driver: str) -> DeviceId | None:
    for allocation in nomination.promised.values():
        for result in allocation.devices.results:
            if result.driver == driver:
                return result.device_id()
    return None
