"""Which claims a pod comes with, the special one for extended resources included."""

from typing import Any

import pytest

from driver.controller.cluster import Cluster
from driver.controller.needs import needs
from driver.model import names
from driver.model.api import ObjectMeta
from driver.model.deviceclass import DeviceClass, DeviceClassSpec
from driver.model.ids import ClaimUid, ObjectKey
from driver.model.resourceclaim import ResourceClaim
from driver.wire.decode import convert
from tests.controller.commits import CLASS, DRIVER, cluster, gpu, picked, proposed, request
from tests.controller.placements import add_claim, extended, pod

GPU = "nvidia.com/gpu"


def empty() -> Cluster:
    """A cluster with one card."""
    return cluster(a=[gpu(0)])


def asks(name: str, count: int = 1, resource: str = GPU, **more: Any) -> dict[str, Any]:
    """A container that is limited to so many cards."""
    return {"name": name, "resources": {"limits": {resource: str(count)}}, **more}


def put_owned(at: Cluster, name: str, owner: str, **more: Any) -> None:
    """A claim that was made for a pod."""
    made = {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "resourceVersion": "5",
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": owner, "controller": True}
            ],
            **more,
        },
        "spec": {"devices": {"requests": [request()]}},
    }
    at.put_claim(convert(ResourceClaim, made), now=0.0)


def from_template(status: list[dict[str, str]]) -> Any:
    """A pod with one claim from a template, whose status is this."""
    entry = {"name": "gpu", "resourceClaimTemplateName": "shares"}
    return pod("p", resourceClaims=[entry], status={"resourceClaimStatuses": status})


def test_a_claim_by_name_waits_to_be_allocated_or_restricts_the_node() -> None:
    """Allocated and free claims are told apart."""
    at = empty()
    held = add_claim(at, "held", request())
    at.put_claim(
        convert(ResourceClaim, proposed(held, picked("gpu-0")) | {"metadata": held["metadata"]}),
        now=0.0,
    )
    add_claim(at, "free", request())
    found = needs(pod("p", "held", "free"), at)
    assert [claim.metadata.name for claim in found.allocated] == ["held"]
    assert [claim.metadata.name for claim in found.waiting] == ["free"]
    assert found.missing == ()


def test_what_does_not_exist_is_missing_in_words() -> None:
    """The name of the claim, or of the template that it will be made from."""
    at = empty()
    assert needs(pod("p", "none"), at).missing == ("claim none",)
    assert needs(from_template([]), at).missing == (
        "the claim that template shares leads to (resourceClaims entry gpu)",
    )


def test_a_claim_from_a_template_is_found_by_the_pods_status() -> None:
    """Only one that belongs to the pod counts: a name may have been used before."""
    at = empty()
    status = [{"name": "gpu", "resourceClaimName": "p-gpu-x"}]
    put_owned(at, "p-gpu-x", owner="another")
    assert needs(from_template(status), at).missing == ("claim p-gpu-x",)
    put_owned(at, "p-gpu-x", owner="p", resourceVersion="6")
    assert [claim.metadata.name for claim in needs(from_template(status), at).waiting] == [
        "p-gpu-x"
    ]


def test_a_claim_that_is_being_deleted_is_no_use() -> None:
    """Its successor has to be waited for."""
    at = empty()
    put_owned(at, "p-gpu-x", owner="p", deletionTimestamp="2026-01-01T00:00:00Z")
    status = [{"name": "gpu", "resourceClaimName": "p-gpu-x"}]
    assert needs(from_template(status), at).missing == ("claim p-gpu-x",)


def test_an_entry_may_turn_out_to_need_no_claim() -> None:
    """The claim controller says so with an entry without a name."""
    assert needs(from_template([{"name": "gpu"}]), empty()).missing == ()


def special(at: Cluster, *containers: dict[str, Any], **more: Any) -> dict[str, tuple[str, int]]:
    """The requests of the special claim: class and count by name."""
    (claim,) = needs(pod("p", containers=list(containers), **more), at).waiting
    assert claim.metadata.uid == ""
    assert claim.metadata.annotations == {names.EXTENDED_CLAIM: "true"}
    return {
        one.name: (one.exactly.device_class_name, one.exactly.count)
        for one in claim.spec.devices.requests
        if one.exactly is not None
    }


def test_an_extended_resource_leads_to_the_claim_the_scheduler_would_make() -> None:
    """Requests are named by container, init containers first, and place among its resources."""
    at = empty()
    extended(at, GPU)
    both = {"name": "b", "resources": {"requests": {"cpu": "1", "memory": "1Gi", GPU: "3"}}}
    side = asks("side", restartPolicy="Always")
    assert special(at, asks("a", 2), both, initContainers=[side]) == {
        "container-0-request-0": (CLASS, 1),
        "container-1-request-0": (CLASS, 2),
        "container-2-request-2": (CLASS, 3),
    }


def test_init_containers_use_what_is_there_for_others() -> None:
    """They have requests only for what they need beyond, and share that with each other."""
    at = empty()
    extended(at, GPU)
    first = [asks("one", 2), asks("two", 4), asks("three", 3)]
    assert special(at, asks("main"), initContainers=first) == {
        "container-0-request-0": (CLASS, 1),
        "container-1-request-0": (CLASS, 2),
        "container-3-request-0": (CLASS, 1),
    }


def test_a_sidecar_keeps_its_devices_from_the_init_containers_after_it() -> None:
    """It runs beside them; those before it can use them."""
    at = empty()
    extended(at, GPU)
    first = [asks("before"), asks("side", restartPolicy="Always"), asks("after")]
    assert special(at, {"name": "main"}, initContainers=first) == {
        "container-1-request-0": (CLASS, 1),
        "container-2-request-0": (CLASS, 1),
    }


def test_every_class_has_an_implicit_resource_name() -> None:
    """A class that does not exist serves nothing."""
    at = empty()
    assert special(at, asks("a", resource=f"deviceclass.resource.kubernetes.io/{CLASS}")) == {
        "container-0-request-0": (CLASS, 1)
    }
    unknown = pod("p", containers=[asks("a", resource="deviceclass.resource.kubernetes.io/none")])
    assert needs(unknown, at).waiting == ()


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ({"older": "2020-01-01T00:00:00Z"}, "newer"),
        ({"a-twin": "2026-01-01T00:00:00Z"}, "a-twin"),
        ({"z-twin": "2026-01-01T00:00:00Z"}, "newer"),
    ],
)
def test_of_classes_with_one_name_the_newest_serves(others: dict[str, str], expected: str) -> None:
    """Then the lower name."""
    at = empty()
    for name, created in {"newer": "2026-01-01T00:00:00Z", **others}.items():
        at.put_class(
            DeviceClass(
                metadata=ObjectMeta(name=name, creation_timestamp=created),
                spec=DeviceClassSpec(extended_resource_name=GPU),
            )
        )
    assert special(at, asks("a")) == {"container-0-request-0": (expected, 1)}


def test_without_kep_5004_an_extended_resource_is_a_plain_one() -> None:
    """Kubernetes 1.34 makes no claim from it by default."""
    at = empty()
    extended(at, GPU)
    at.extended_resources = False
    found = needs(pod("p", containers=[asks("a")]), at)
    assert found.waiting == ()
    assert found.by_devices == frozenset()


def test_the_special_claim_that_exists_takes_the_place_of_the_expected_one() -> None:
    """It is known by its owner, before the pod's status names it; and no longer once deleted."""
    at = empty()
    extended(at, GPU)
    wanted = pod("p", containers=[asks("a")])
    put_owned(at, "p-extended-x", owner="p", annotations={names.EXTENDED_CLAIM: "true"})
    (claim,) = needs(wanted, at).waiting
    assert claim.metadata.uid == "uid-p-extended-x"
    at.remove_claim(ObjectKey("ns", "p-extended-x"), ClaimUid(claim.metadata.uid), 9, now=0.0)
    (claim,) = needs(wanted, at).waiting
    assert claim.metadata.uid == ""
    assert at.driver == DRIVER
