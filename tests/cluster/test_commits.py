"""Answers of our hook that land late, or not at all, as the API server stores them."""

import json
import signal

import pytest

from driver.model import names
from hack.deployment import NAMESPACE
from tests.cluster import history
from tests.cluster.site import Site
from tests.cluster.webhook import AFTER_OURS, Hold, stranger
from tests.cluster.workloads import claim, request

pytestmark = pytest.mark.cluster

NODE = "t4"
COMPACT = {names.GPU_POLICY: "compact"}


def whole(site: Site, name: str, *, index: int | None = None) -> str:
    """Create a pod on the node with a whole card, claimed by name; the pod's name."""
    return site.claim_card(name, NODE, request(index=index), COMPACT)


def test_late_landing_after_take_over(site: Site) -> None:
    """What a killed controller answered does not land on a device that its successor gives away."""
    hold = Hold("first")
    with stranger(site.api, AFTER_OURS, hold):
        whole(site, "first")
        site.wait("the answer to be under way", lambda: hold.reached)
        site.deployment.controller.stop(signal.SIGKILL)
        # It is certain that it has ended, so its lease is given back in its place.
        given_back = json.dumps({"spec": {"holderIdentity": ""}})
        lease = ("lease", "quadrant-controller", "-n", NAMESPACE)
        site.deployment.kubectl("patch", *lease, "--type=merge", "-p", given_back)
        site.deployment.start_controller()
        second = whole(site, "second")
        site.running(second)
        if hold.timed_out:
            pytest.skip("this machine is too slow: the API server has given the write up")
        assert site.devices_of(second) == [(NODE, "gpu-0")], "the device that was answered before"
        assert not history.results(site.api.get("claims", "first") or {}), "it has landed early"
        hold.open()
        site.running("first")
    assert len({*site.devices_of("first"), *site.devices_of(second)}) == 2


def test_dry_run_leaves_no_trace(site: Site) -> None:
    """The answer is shown, nothing is stored, and nothing is held."""
    site.running(whole(site, "real", index=3))
    (real,) = (one for one in site.api.list("claims") if one["metadata"]["name"] == "real")
    for name in ("dry-1", "dry-2"):
        site.api.create("claims", claim(name, request(), annotations=COMPACT))
        body = {"status": {"allocation": real["status"]["allocation"]}}
        shown = site.api.patch("claims", f"{name}/status", body, dryRun="All")
        (result,) = history.results(shown)
        assert result["device"] == "gpu-0", "the held card is replaced, by the same one each time"
        assert not history.results(site.api.get("claims", name) or {})
    site.running(whole(site, "next"))
    assert site.devices_of("next") == [(NODE, "gpu-0")]
