"""Claims as users write them: shared by containers and by pods, several in one pod."""

import pytest

from tests.cluster import history
from tests.cluster.site import Site, attribute, uuids
from tests.cluster.workloads import claim, container, existing, made_from, pod, request, share
from tests.cluster.workloads import template as template_of

pytestmark = pytest.mark.cluster


def test_a_claim_is_shared_by_two_containers(site: Site) -> None:
    """Both see the same card and no other, and the limits of its share."""
    site.api.create("templates", template_of("one", request(**share(cores="30"))))
    both = [container(name, claims=[{"name": "gpu"}]) for name in ("first", "second")]
    site.run(pod("both", *both, claims={"gpu": made_from("one")}))
    first, second = (site.environment("both", name) for name in ("first", "second"))
    assert len(uuids(first)) == 1
    assert uuids(first) == uuids(second)
    assert first["CUDA_DEVICE_MEMORY_LIMIT_0"] == "7500m"
    assert first["CUDA_DEVICE_SM_LIMIT_0"] == "30"
    assert len(site.allocated()) == 1


def test_a_container_sees_only_its_own_request(site: Site) -> None:
    """Of a claim with two requests, each container gets the one that it names."""
    site.api.create("templates", template_of("two", request("left"), request("right")))
    sides = [
        container(side, claims=[{"name": "gpus", "request": side}]) for side in ("left", "right")
    ]
    site.run(pod("sides", *sides, claims={"gpus": made_from("two")}))
    left, right = (uuids(site.environment("sides", side)) for side in ("left", "right"))
    assert len(left) == len(right) == 1
    assert left != right


def test_a_claim_is_shared_by_two_pods(site: Site) -> None:
    """Both pods run on the claim's node and see one card; it stays prepared until both are gone."""
    site.api.create("claims", claim("ours", request()))
    one, two = site.run(*(pod(name, claims={"gpu": existing("ours")}) for name in ("one", "two")))
    assert uuids(site.environment(one)) == uuids(site.environment(two))
    assert site.node_of(one) == site.node_of(two)
    site.delete(one)
    assert len(site.cdi_files()) == 1
    three = site.run(pod("three", claims={"gpu": existing("ours")}))[0]
    assert uuids(site.environment(three)) == uuids(site.environment(two))
    site.delete(two, three)
    site.wait("the claim to be free", lambda: not site.allocated())
    site.wait("the CDI file to be gone", lambda: not site.cdi_files())
    site.api.delete("claims", "ours")


def test_a_pod_with_two_claims(site: Site) -> None:
    """Each container of a pod uses one of its claims, a third one both."""
    site.api.create("templates", template_of("whole", request()))
    site.api.create("templates", template_of("part", request(**share())))
    one = container("one", claims=[{"name": "whole"}])
    two = container("two", claims=[{"name": "part"}])
    both = container("both", claims=[{"name": "whole"}, {"name": "part"}])
    claims = {"whole": made_from("whole"), "part": made_from("part")}
    site.run(pod("mixed", one, two, both, claims=claims))
    whole, part = (uuids(site.environment("mixed", name)) for name in ("one", "two"))
    assert len(set(whole + part)) == 2
    published = history.devices(site.api.list("slices"))
    told = [attribute(published[device], "uuid") for device in site.devices_of("mixed")]
    assert told == [*whole, *part]
    lines = [name for name in site.environment("mixed", "both") if name.startswith("QUADRANT")]
    assert len(lines) == 2
