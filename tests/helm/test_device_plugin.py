"""A device plugin that serves the same resource is noticed before anything is installed."""

import json
from collections.abc import Iterator

import pytest

from tests.cluster.site import hack_cluster
from tests.helm.chart import CHART, NAMESPACE
from tests.helm.release import Release

pytestmark = pytest.mark.cluster

CLUSTER = "plugin"
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "stranger"}}
CARDS = {"nvidia.com/gpu": "8"}
INSTALL = (
    *("install", "quadrant", str(CHART), "--namespace", NAMESPACE, "--create-namespace"),
    "--dry-run=server",
)
SERVED = "deviceClass.extendedResourceName=nvidia.com/gpu"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Release]:
    """A control plane, with a node whose device plugin serves cards."""
    hack_cluster(CLUSTER, "down")
    hack_cluster(CLUSTER, "up", "--control-plane-only")
    try:
        made = Release(json.loads(hack_cluster(CLUSTER, "status", "-o", "json")))
        made.kubectl("create", "-f", "-", given=json.dumps(NODE))
        status = json.dumps({"status": {"capacity": CARDS, "allocatable": CARDS}})
        patch = ("--subresource=status", "--type=merge", "-p", status)
        made.kubectl("patch", "node", "stranger", *patch)
        yield made
    finally:
        hack_cluster(CLUSTER, "down")


def test_the_same_name_is_refused(cluster: Release) -> None:
    """The error names the node, and both ways out."""
    error = cluster.refused_install(*INSTALL, "--set", SERVED)
    assert "node stranger has 8 of nvidia.com/gpu from a device plugin" in error
    assert "deviceClass.besideDevicePlugin=true" in error


@pytest.mark.parametrize(
    "value",
    [f"{SERVED},deviceClass.besideDevicePlugin=true", "deviceClass.extendedResourceName=a.com/gpu"],
)
def test_it_does_not_matter_otherwise(cluster: Release, value: str) -> None:
    """The user knows better, or the name is another one."""
    assert "quadrant" in cluster.helm(*INSTALL, "--set", value)
