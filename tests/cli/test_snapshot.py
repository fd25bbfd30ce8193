"""A cluster's state as a file: what simulate makes of it, and what redaction leaves."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from driver.cli.live.listing import Listing
from driver.cli.live.snapshot import document
from driver.cli.simulation.documents import ManifestError
from driver.cli.simulation.report import Report
from driver.model import names
from driver.model.core import Namespace
from driver.model.deviceclass import DeviceTaintRule
from driver.model.resourceclaim import ResourceClaimTemplate
from driver.wire.decode import convert
from tests.cli.conftest import Quadrant
from tests.cli.listings import held, listing, running, waiting
from tests.controller.commits import Json, gpu, request
from tests.controller.placements import modes, node, pod

SHARE = request(mebi=7500)
MORE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: share, namespace: ns}
spec:
  spec:
    devices:
      requests:
        - name: gpu
          exactly:
            deviceClassName: gpu.quadrant.dev
            capacity: {requests: {memory: 7500Mi}}
---
apiVersion: v1
kind: Pod
metadata: {name: new, namespace: ns}
spec:
  resourceClaims: [{name: gpu, resourceClaimTemplateName: share}]
  containers: [{name: main, resources: {claims: [{name: gpu}]}}]
"""


def cluster(**replaced: Any) -> Listing:
    """A share in use on the A10G; a pod that waits, and one that has ended."""
    mine = held("mine", SHARE, device="gpu-2", on="a10g", mebi=7500, user="runs")
    ended = running("ended", on="t4", status={"phase": "Succeeded"})
    made = listing(
        mine,
        waiting("free", SHARE),
        running("runs", "mine", on="a10g"),
        pod("waits", "free", annotations=modes("spread", "compact")),
        ended,
    )
    return msgspec.structs.replace(made, **replaced)


def write(found: Listing, folder: Path, *, redact: bool = False) -> Path:
    """As `quadrant snapshot > FILE` does."""
    path = folder / "snapshot.json"
    path.write_bytes(msgspec.json.encode(document(found, redact=redact)))
    return path


def simulated(quadrant: Quadrant, *files: Path, policy: str = "compact/compact") -> Report:
    """The report of `quadrant simulate` on these files."""
    options = [part for file in files for part in ("-f", str(file))]
    shown = quadrant("simulate", *options, "--policy", policy, "-o", "json").stdout
    return msgspec.json.decode(shown, type=Report)


def test_simulate_starts_from_the_present_allocations(quadrant: Quadrant, tmp_path: Path) -> None:
    """Who runs keeps what he has; who waits is placed; who has ended is not there."""
    report = simulated(quadrant, write(cluster(), tmp_path))
    assert [(c.node, c.device) for c in report.before if c.shares] == [("a10g", "gpu-2")]
    (placement,) = report.placements
    # The node policy of the pod is spread: the other node.
    assert (placement.pod, placement.node) == ("waits", "t4")
    assert report.pending == ()
    assert report.kubernetes == "v1.37.2"


def test_new_pods_go_beside_those_of_the_snapshot(quadrant: Quadrant, tmp_path: Path) -> None:
    """The card in use is the fullest, so it gets the new share too."""
    more = tmp_path / "more.yaml"
    more.write_text(MORE, "utf-8")
    report = simulated(quadrant, write(cluster(pods=()), tmp_path), more)
    (placement,) = report.placements
    assert (placement.node, placement.devices[0].device) == ("a10g", "gpu-2")


def test_the_features_are_those_of_the_cluster(quadrant: Quadrant, tmp_path: Path) -> None:
    """Where the snapshot's API server has no shares, there are none; --kubernetes goes before."""
    served = msgspec.structs.replace(
        cluster().served,
        features=msgspec.structs.replace(cluster().served.features, consumable_capacity=False),
    )
    path = write(cluster(served=served), tmp_path)
    assert simulated(quadrant, path).placements == ()
    shown = quadrant("simulate", "-f", path, "-o", "json", "--kubernetes", "1.37").stdout
    assert json.loads(shown)["placements"][0]["devices"][0]["shared"]


def test_a_snapshot_of_another_version_is_refused(quadrant: Quadrant, tmp_path: Path) -> None:
    """Nothing is guessed about it."""
    path = write(cluster(), tmp_path)
    path.write_text(path.read_text("utf-8").replace("v1alpha1", "v2", 1), "utf-8")
    with pytest.raises(ManifestError, match=r"apiVersion: is 'quadrant\.dev/v2'"):
        quadrant("simulate", "-f", path)


SECRET = "acme"  # noqa: S105 # a word to look for


def secretive() -> Listing:
    """A cluster in which people gave everything a name with a word that shall not get out."""
    uuid = f"GPU-{SECRET}-1"
    card: Json = gpu(0, mebi=15360)
    card["attributes"]["uuid"] = {"string": uuid}
    cel = {"cel": {"expression": f"device.attributes['gpu.quadrant.dev'].uuid == '{uuid}'"}}
    asked = request(mebi=7500, selectors=[cel])
    on = f"{SECRET}-host-2"
    labels = {"kubernetes.io/hostname": on, f"{SECRET}.com/team": SECRET, "rank": "7"}
    labels[f"{SECRET}-k8s.io/team"] = "1"
    tainted = [{"key": "dedicated", "value": SECRET, "effect": "NoSchedule"}]
    tolerates = [{"key": "dedicated", "operator": "Equal", "value": SECRET}]
    claims = (
        held(f"{SECRET}-held", asked, device="gpu-0", on=on, mebi=7500, user=f"{SECRET}-runs"),
        waiting(f"{SECRET}-free", asked),
    )
    wants: dict[str, Any] = {
        "nodeSelector": {f"{SECRET}.com/team": SECRET, "rank": "7"},
        "tolerations": tolerates,
        "containers": [{"name": f"{SECRET}-trainer"}],
    }
    made = listing(
        node(on, labels=labels, taints=tainted),
        node(f"{SECRET}-host-1", labels={"kubernetes.io/hostname": f"{SECRET}-host-1"}),
        *claims,
        running(f"{SECRET}-runs", f"{SECRET}-held", on=on),
        pod(
            f"{SECRET}-waits",
            f"{SECRET}-free",
            annotations={"note": SECRET} | modes("compact", "compact"),
            status={"nominatedNodeName": on, "conditions": [{"message": SECRET}]},
            **wants,
        ),
        cards={f"{SECRET}-host-1": [gpu(0, mebi=15360)], on: [card]},
    )
    template = {
        "metadata": {"name": SECRET, "namespace": "ns", "labels": {SECRET: SECRET}},
        "spec": {"metadata": {"labels": {"a": SECRET}}, "spec": {"devices": {"requests": [asked]}}},
    }
    rule = {
        "metadata": {"name": SECRET},
        "spec": {
            "deviceSelector": {"pool": f"{SECRET}-host-1"},
            "taint": {"key": "sick", "value": SECRET, "effect": "NoSchedule"},
        },
    }
    space = {"metadata": {"name": "ns", "labels": {"kubernetes.io/metadata.name": SECRET}}}
    return msgspec.structs.replace(
        made,
        namespaces=(convert(Namespace, space),),
        templates=(convert(ResourceClaimTemplate, template),),
        taint_rules=(convert(DeviceTaintRule, rule),),
    )


def test_redaction_leaves_no_name_and_changes_no_decision(
    quadrant: Quadrant, tmp_path: Path
) -> None:
    """The same pod goes to the same card, whatever all of it is called."""
    plain = write(secretive(), tmp_path).read_text("utf-8")
    assert SECRET in plain
    before = simulated(quadrant, tmp_path / "snapshot.json")
    redacted = write(secretive(), tmp_path, redact=True)
    assert SECRET not in redacted.read_text("utf-8")
    after = simulated(quadrant, redacted)
    (was,), (now,) = before.placements, after.placements
    assert (was.node, now.node) == (f"{SECRET}-host-2", "node-002")
    assert [device.device for device in was.devices] == [device.device for device in now.devices]
    assert [card.shares for card in before.cards] == [card.shares for card in after.cards]
    assert (was.node_policy, was.gpu_policy) == (now.node_policy, now.gpu_policy)


def test_what_is_kept_of_an_object() -> None:
    """No annotations of tools, no finalizers; a class keeps its policies only when redacted."""
    noisy = pod("p", annotations={"kubectl.kubernetes.io/last-applied-configuration": "{}"})
    made = document(cluster(pods=(noisy,)), redact=False)
    (kept,) = [item for item in made["items"] if item["kind"] == "Pod"]
    assert kept["metadata"].get("annotations", {}) == {}
    assert kept["metadata"]["labels"] == {names.POD_LABEL: "true"}
    assert made["redacted"] is False
