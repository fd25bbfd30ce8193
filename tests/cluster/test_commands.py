"""What people type, against a real API server, scheduler and kubelet; and the controller's page."""

import gzip
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import yaml

from tests.cluster.site import Site
from tests.cluster.workloads import claim, container, pod, request, share

pytestmark = pytest.mark.cluster
HAMI = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "7500"}


def quadrant(
    site: Site, *arguments: str, stdin: str | None = None, status: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run the program with the cluster's kubeconfig; it has to end with this status."""
    offline = arguments[0] in ("migrate", "simulate")
    options = [] if offline else ["--kubeconfig", str(site.state["kubeconfig"])]
    done = subprocess.run(
        [sys.executable, "-m", "driver.cli", *arguments, *options],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


def seen(site: Site, *arguments: str) -> Any:
    """The same as data."""
    return json.loads(quadrant(site, *arguments, "-o", "json").stdout)


@pytest.fixture
def busy(site: Site) -> Iterator[Site]:
    """A share on one node, a whole card on the other, and a claim that nobody can serve."""
    site.claim_card("part", "t4", request(**share()))
    site.claim_card("whole", "a10g", request())
    site.running("part", "whole")
    site.api.create("claims", claim("never", request(count=20)))
    yield site
    site.api.delete("claims", "never")


def test_matrix_and_claims_say_what_is_allocated(busy: Site) -> None:
    """Devices, states, users, and the score that the controller told."""
    found = {one["name"]: one for one in seen(busy, "claims")["claims"]}
    for name, node in (("part", "t4"), ("whole", "a10g")):
        row = found[name]
        assert [(row["node"], one["device"]) for one in row["devices"]] == busy.devices_of(name)
        assert (row["state"], row["node"], row["pod"]) == ("allocated,reserved", node, name)
        busy.wait(f"the score of {name}", partial(_told, busy, name))
    assert (found["never"]["state"], found["never"]["devices"]) == ("pending", [])
    matrix = seen(busy, "matrix")
    cards = {(row["node"], one["device"]): one for row in matrix["nodes"] for one in row["cards"]}
    (part,), (whole,) = busy.devices_of("part"), busy.devices_of("whole")
    assert (cards[part]["use"], cards[part]["memoryUsedMiB"]) == ("shared", 7500)
    assert cards[whole]["memoryUsedMiB"] == cards[whole]["memoryMiB"]
    assert (matrix["total"]["cards"], matrix["total"]["free"]) == (8, 6)
    shown = quadrant(busy, "topo", "t4").stdout
    assert "1 share, 7.3 GiB" in shown


def _told(site: Site, name: str) -> bool:
    """Whether the claim's score is known: the event may come a moment later."""
    (row,) = (one for one in seen(site, "claims")["claims"] if one["name"] == name)
    return row["score"] is not None


def test_a_closed_card_gets_nothing_new(busy: Site) -> None:
    """All cards of a node but the one in use: what runs stays, what comes goes elsewhere."""
    ((_, kept),) = busy.devices_of("part")
    others = [f"t4/gpu-{index}" for index in range(4) if f"gpu-{index}" != kept]
    quadrant(busy, "cordon", *others)
    try:
        busy.wait("the plugin to close them", lambda: seen(busy, "matrix")["total"]["tainted"] == 3)
        site_claims = [f"late-{index}" for index in range(3)]
        for name in site_claims:
            busy.api.create("claims", claim(name, request()))
            uses = {"gpu": {"resourceClaimName": name}}
            busy.api.create("pods", pod(name, claims=uses))
        busy.running(*site_claims)
        assert {busy.node_of(name) for name in site_claims} == {"a10g"}
        assert busy.node_of("part") == "t4"
    finally:
        quadrant(busy, "uncordon", *others)
    busy.wait("them to be open", lambda: seen(busy, "matrix")["total"]["tainted"] == 0)
    quadrant(busy, "cordon", "t4/gpu-9", status=1)
    quadrant(busy, "cordon", "nowhere/gpu-0", status=1)


def test_doctor_finds_this_installation_healthy(site: Site) -> None:
    """No chart, so that some is not looked at; what is there works."""
    found = seen(site, "doctor")
    levels = {one["check"]: one["level"] for one in found["findings"]}
    assert found["healthy"]
    for check in (
        "kubernetes", "webhook quadrant-commit", "webhook quadrant-pods", "pod webhook (dry run)",
        "lease", "slices", "device classes", "device plugin", "your rights",
    ):  # fmt: skip
        assert levels[check] == "ok", check


def test_doctor_finds_a_webhook_that_is_gone(site: Site) -> None:
    """The configuration is there, and nobody answers: a pod gets no gate."""
    site.deployment.controller.stop()
    try:
        found = json.loads(quadrant(site, "doctor", "-o", "json", status=1).stdout)
        levels = {one["check"]: one["level"] for one in found["findings"]}
        assert levels["pod webhook (dry run)"] == "fail"
        assert levels["lease"] == "fail"
    finally:
        site.deployment.start_controller()


def test_the_page_says_the_same(busy: Site) -> None:
    """What the controller has in memory is what the API server has."""
    port = busy.deployment._ports[1]

    def page() -> Any:
        request = urllib.request.Request(f"http://127.0.0.1:{port}/ui/data")
        with urllib.request.urlopen(request, timeout=5) as answer:
            return json.loads(gzip.decompress(answer.read()))

    def same() -> bool:
        found = page()
        matrix = seen(busy, "matrix")
        return bool(found["nodes"] == matrix["nodes"] and found["total"] == matrix["total"])

    busy.wait("the page to say the same", same)
    assert {one["name"] for one in page()["claims"]} == {"part", "whole", "never"}


def test_a_rewritten_manifest_gets_the_same(site: Site) -> None:
    """HAMi's pod as it is, and rewritten: the same part of the same kind of card."""
    before = pod("as-it-is", container(limits=HAMI))
    before["metadata"]["annotations"] = {"nvidia.com/use-gputype": "A10G"}
    after = json.loads(json.dumps(before).replace("as-it-is", "rewritten"))
    text = quadrant(site, "migrate", "-f", "-", "-o", "yaml", stdin=yaml.safe_dump(after)).stdout
    made, rewritten = yaml.safe_load_all(text)
    site.api.create("templates", made)
    site.run(before, rewritten)
    claims = {one["metadata"]["ownerReferences"][0]["name"]: one for one in site.allocated()}
    assert claims["as-it-is"]["spec"] == claims["rewritten"]["spec"]
    assert site.devices_of("rewritten") == site.devices_of("as-it-is")
    limits = [
        {name: value for name, value in site.environment(one).items() if "LIMIT" in name}
        for one in ("as-it-is", "rewritten")
    ]
    assert limits[0] == limits[1]
