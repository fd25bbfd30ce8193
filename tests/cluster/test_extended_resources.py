"""`nvidia.com/gpu` as ever (KEP-5004): the pod stays as it is, our policies choose the cards."""

from collections.abc import Iterator

import pytest

from driver.model import names
from tests.cluster import history
from tests.cluster.site import Site, attribute, uuids
from tests.cluster.workloads import Object, container, pod

pytestmark = pytest.mark.cluster

GPU = "nvidia.com/gpu"


@pytest.fixture
def board(site: Site) -> Iterator[Site]:
    """The node t4 has eight cards in four NUMA nodes in place of its own."""
    site.replace_cards("t4", "8xA100-SXM4-40GB")
    yield site
    site.clear()
    site.replace_cards("t4", "4xT4")


def native(name: str, policy: str) -> Object:
    """A pod that asks for one whole card in the old words."""
    return pod(
        name,
        container(limits={GPU: "1"}),
        node="t4",
        annotations={names.GPU_POLICY: policy},
    )


def test_native_extended_resource_is_scored(board: Site) -> None:
    """Two pods get cards near each other or apart, as the GPU axis says."""
    assert len(_numa_nodes(board, "compact")) == 1
    board.clear()
    assert len(_numa_nodes(board, "spread")) == 2


def _numa_nodes(board: Site, policy: str) -> set[int]:
    """Run two pods, look at all that is said of their cards, and tell where these are."""
    pods = ("one", "two")
    for name in pods:  # the second must see where the first one is
        board.run(native(name, policy))
    published = history.devices(board.api.list("slices"))
    places = set()
    for name in pods:
        stored = board.pod(name)
        assert stored["spec"]["containers"][0]["resources"]["limits"] == {GPU: "1"}
        status = stored["status"]["extendedResourceClaimStatus"]
        (mapping,) = status["requestMappings"]
        assert (mapping["containerName"], mapping["resourceName"]) == ("main", GPU)
        (device,) = board.devices_of(name)
        assert uuids(board.environment(name)) == [attribute(published[device], "uuid")]
        places.add(int(attribute(published[device], names.NUMA_NODE)))
    return places
