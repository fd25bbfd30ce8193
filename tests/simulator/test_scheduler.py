"""Where the stock scheduler puts a pod."""

import pytest

from driver.allocator.problem import Problem
from driver.controller.cluster import Cluster
from driver.controller.policies import Defaults
from driver.model.api import ObjectMeta
from driver.model.core import Node
from driver.model.deviceclass import DeviceClass
from driver.model.ids import NodeName
from driver.model.resourceclaim import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from driver.model.resourceslice import Device, ResourcePool, ResourceSlice, ResourceSliceSpec
from driver.simulator.releases import release
from driver.simulator.scheduler import Placed, Unplaced, first_fit

NODES = tuple(NodeName(name) for name in ("n1", "n2", "n3"))
FEATURES = release("1.37").features


def _cluster(devices: dict[str, int]) -> Cluster:
    cluster = Cluster(driver="d", features=FEATURES, defaults=Defaults(node="none", gpu="none"))
    for node, number in devices.items():
        spec = ResourceSliceSpec(
            driver="d",
            pool=ResourcePool(name=node, generation=1, resource_slice_count=1),
            node_name=node,
            devices=tuple(Device(name=f"gpu-{index}") for index in range(number)),
        )
        cluster.inventory.put_slice(ResourceSlice(metadata=ObjectMeta(name=node), spec=spec))
    return cluster


def _claim(count: int) -> ResourceClaim:
    exactly = ExactDeviceRequest(device_class_name="gpu", count=count)
    devices = DeviceClaim(requests=(DeviceRequest(name="r", exactly=exactly),))
    return ResourceClaim(metadata=ObjectMeta(name="c"), spec=ResourceClaimSpec(devices=devices))


def _fit(
    devices: dict[str, int],
    count: int,
    *,
    nominated: str = "",
    unfit: tuple[str, ...] = (),
    claims: bool = True,
) -> Placed | Unplaced:
    cluster = _cluster(devices)

    def problem(node: NodeName) -> Problem | str:
        if node in unfit:
            return "the node is cordoned"
        here = Node(metadata=ObjectMeta(name=node))
        return Problem(
            node=here,
            claims=(_claim(count),) if claims else (),
            classes={"gpu": DeviceClass(metadata=ObjectMeta(name="gpu"))},
            pools=cluster.inventory.pools(here),
            features=FEATURES,
        )

    return first_fit(NODES, problem, nominated=nominated)


@pytest.mark.parametrize(
    ("devices", "count", "nominated", "node"),
    [
        ({"n1": 2, "n2": 2}, 1, "", "n1"),
        ({"n1": 1, "n2": 2}, 2, "", "n2"),
        ({"n1": 2, "n2": 2}, 1, "n2", "n2"),
        ({"n1": 2, "n2": 1}, 2, "n2", "n1"),
        ({"n1": 2}, 1, "unknown", "n1"),
    ],
)
def test_nominated_first_then_in_order(
    devices: dict[str, int], count: int, nominated: str, node: str
) -> None:
    """The first node that fits takes the pod; a nominated one is tried before all others."""
    found = _fit(devices, count, nominated=nominated)
    assert isinstance(found, Placed)
    assert found.node == node


def test_the_first_devices_in_order_are_proposed() -> None:
    """No score, and one allocation for each claim, bound to the node."""
    found = _fit({"n1": 3}, 2)
    assert isinstance(found, Placed)
    (allocation,) = found.allocations
    assert [result.device for result in allocation.devices.results] == ["gpu-0", "gpu-1"]


def test_without_claims_the_node_is_enough() -> None:
    """A pod whose claims are allocated already needs no devices."""
    found = _fit({}, 1, claims=False, unfit=("n1",))
    assert found == Placed(NodeName("n2"), ())


def test_reasons_are_counted_together() -> None:
    """One part for each reason, with the nodes that share it."""
    found = _fit({"n1": 1}, 2, unfit=("n2", "n3"))
    assert isinstance(found, Unplaced)
    assert found.reason().startswith("n2, n3: the node is cordoned; n1: ")


def test_many_nodes_are_a_number() -> None:
    """A sentence does not list a thousand names."""
    reasons = tuple((NodeName(f"n{number}"), "full") for number in range(1000))
    assert Unplaced(reasons).reason() == "1000 nodes: full"
    assert Unplaced(()).reason() == "there are no nodes"
