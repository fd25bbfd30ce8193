"""Pods that wait beside a free device are found, once they have waited for too long."""

import pytest

from driver.controller.cluster import Cluster
from driver.controller.nominations import SPECIAL, Nomination
from driver.controller.sleepers import AT_MOST_EVERY_S, WAKE_AFTER_S, Sleepers
from driver.model.core import Pod
from driver.model.ids import DeviceId
from driver.model.resourceclaim import AllocationResult
from driver.wire.decode import convert
from tests.controller.commits import cluster, gpu, picked

FIRST, SECOND = WAKE_AFTER_S
GPU_0 = DeviceId("gpu.quadrant.dev", "a", "gpu-0")


@pytest.fixture
def at() -> Cluster:
    """One node with one card."""
    return cluster("compact", a=[gpu(0)])


def put(at: Cluster, uid: str = "p", *, reason: str = "Unschedulable", node: str = "") -> None:
    """The watch shows a pod."""
    condition = {"type": "PodScheduled", "status": "False", "reason": reason}
    shown = {
        "metadata": {"name": uid, "namespace": "ns", "uid": uid},
        "spec": {"containers": [], "nodeName": node},
        "status": {"conditions": [condition] if reason else []},
    }
    at.put_pod(convert(Pod, shown))


def nominate(at: Cluster, uid: str = "p") -> None:
    """We have found a place for it."""
    devices = {"devices": {"results": [picked("gpu-0")]}}
    promised = {SPECIAL: convert(AllocationResult, devices)}
    at.nominations.put(Nomination(pod=uid, node="a", promised=promised))


def test_a_pod_that_sleeps_is_woken_twice(at: Cluster) -> None:
    """When its longest back-off is over, and when what has vanished has been given up."""
    put(at)
    nominate(at)
    sleepers = Sleepers()
    moments = range(0, 600, 5)
    assert [now for now in moments if sleepers.due(at, now) == GPU_0] == [FIRST, SECOND]


def test_a_pod_that_the_scheduler_has_tried_in_vain_is_awake(at: Cluster) -> None:
    """It takes our nomination back then: the node lacks something that we do not see."""
    put(at)
    nominate(at)
    sleepers = Sleepers()
    assert sleepers.due(at, 0.0) is None
    at.nominations.drop("p")
    assert sleepers.due(at, FIRST) is None
    nominate(at)
    assert sleepers.due(at, FIRST + 1) is None


def test_a_pod_that_was_woken_in_vain_is_woken_once_more(at: Cluster) -> None:
    """Its nomination is gone by then, but the device may be in the scheduler's book until later."""
    put(at)
    nominate(at)
    sleepers = Sleepers()
    sleepers.due(at, 0.0)
    assert sleepers.due(at, FIRST) == GPU_0
    at.nominations.drop("p")
    assert sleepers.due(at, SECOND - 1) is None
    assert sleepers.due(at, SECOND) == GPU_0


@pytest.mark.parametrize(
    ("reason", "node", "nominated"),
    [("Unschedulable", "", False), ("SchedulerError", "", True), ("", "a", True), ("", "", True)],
)
def test_who_does_not_sleep(at: Cluster, reason: str, node: str, *, nominated: bool) -> None:
    """Who fits nowhere, is being tried, or is bound."""
    put(at, reason=reason, node=node)
    if nominated:
        nominate(at)
    sleepers = Sleepers()
    assert not [now for now in range(0, 600, 5) if sleepers.due(at, now)]


def test_one_event_wakes_all_and_they_are_rare(at: Cluster) -> None:
    """Every one has the scheduler try all pods again."""
    sleepers = Sleepers()
    woken = []
    for now in range(100):
        if now < 50:
            put(at, f"p{now}")
            nominate(at, f"p{now}")
        if sleepers.due(at, now):
            woken.append(now)
    assert woken == [FIRST, FIRST + AT_MOST_EVERY_S, FIRST + 2 * AT_MOST_EVERY_S]
