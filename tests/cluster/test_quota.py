"""examples/quota.yaml on a real API server: what is counted, and that too much is refused."""

import http
import json
from collections.abc import Iterator

import pytest
import yaml

from tests.cluster.api import RefusedError
from tests.cluster.site import ROOT, Site
from tests.cluster.workloads import (
    Object,
    claim,
    container,
    made_from,
    pod,
    request,
    share,
    template,
)

pytestmark = pytest.mark.cluster

FILE = ROOT / "examples" / "quota.yaml"
QUOTA: Object = yaml.safe_load(FILE.read_text())
NAME, HARD = QUOTA["metadata"]["name"], QUOTA["spec"]["hard"]
DEVICES = "{}.deviceclass.resource.k8s.io/devices"
CARDS = DEVICES.format("gpu.quadrant.dev")
SHARES = DEVICES.format("shared.gpu.quadrant.dev")
GPU = "requests.nvidia.com/gpu"


@pytest.fixture
def limited(site: Site) -> Iterator[Site]:
    """The namespace of the tests has the example's quota, and it is looked after."""
    site.deployment.kubectl("apply", "-n", "default", "-f", str(FILE))
    try:
        site.wait("the quota to count", lambda: used(site).keys() == HARD.keys())
        yield site
    finally:
        site.deployment.kubectl("delete", "-n", "default", "-f", str(FILE))


def used(site: Site) -> Object:
    """What the quota has counted."""
    found = json.loads(site.deployment.kubectl("get", "quota", NAME, "-o", "json"))
    return dict(found.get("status", {}).get("used", {}))


def refusal(site: Site, kind: str, body: Object) -> str:
    """Why the API server does not take an object; it must not."""
    with pytest.raises(RefusedError) as refused:
        site.api.create(kind, body)
    assert refused.value.status == http.HTTPStatus.FORBIDDEN
    return str(refused.value)


def test_claims_are_counted_by_class_and_refused_beyond(limited: Site) -> None:
    """Shares as whole devices; cards that wait count too, and so does what a class is named by."""
    limit = int(HARD[CARDS])
    limited.api.create("claims", claim("cards", request(count=limit - 1)))
    limited.api.create("claims", claim("share", request(**share())))
    of_shares = {"name": "gpu", "exactly": {"deviceClassName": "shared.gpu.quadrant.dev"}}
    limited.api.create("claims", claim("apart", of_shares))
    wanted = {CARDS: str(limit), SHARES: "1", GPU: str(limit)}
    limited.wait("all to be counted", lambda: wanted.items() <= used(limited).items())
    says = refusal(limited, "claims", claim("more", request()))
    assert f"exceeded quota: {NAME}" in says
    assert f"{CARDS}=1" in says


def test_pods_with_the_old_words_are_counted_before_they_have_a_claim(limited: Site) -> None:
    """`nvidia.com/gpu`, where a class has the name: pod and claim together count each card once."""
    limit = int(HARD[GPU])
    limited.run(pod("old", container(limits={"nvidia.com/gpu": "1"})))
    assert {used(limited)[one] for one in (CARDS, GPU)} == {"1"}
    limited.api.create("claims", claim("new", request(count=limit - 1)))
    says = refusal(limited, "pods", pod("more", container(limits={"nvidia.com/gpu": "1"})))
    assert f"exceeded quota: {NAME}, requested: {GPU}=1" in says


def test_a_pod_whose_claim_is_too_much_waits_and_is_told(limited: Site) -> None:
    """Claims from templates are made after the pod; it waits until there is room for its own."""
    limited.api.create("claims", claim("all", request(count=int(HARD[CARDS]))))
    limited.api.create("templates", template("card", request()))
    limited.api.create("pods", pod("late", claims={"gpu": made_from("card")}))

    def told() -> bool:
        events = limited.api.list("events")
        return any(f"exceeded quota: {NAME}" in str(one) and "late" in str(one) for one in events)

    limited.wait("the pod to be told of the quota", told)
    assert not limited.node_of("late")
    limited.api.delete("claims", "all")
    limited.running("late")
