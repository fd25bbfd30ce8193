"""Other ways than the two-by-two in which pods get devices, or do not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from driver.cli.simulation.report import Report
from driver.cli.usage import UsageError
from tests.cli.conftest import ROOT, TWO_BY_TWO, Quadrant

INVENTORY = TWO_BY_TWO / "inventory.yaml"
CLASS = ROOT / "deviceclasses" / "gpu.yaml"
EXTENDED = ROOT / "examples" / "extended-resource" / "deviceclass.yaml"
EXAMPLES = ROOT / "examples"
SHARES = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: share}
spec:
  spec:
    devices:
      requests:
        - name: gpu
          exactly:
            deviceClassName: gpu.quadrant.dev
            capacity: {requests: {memory: 7500Mi, cores: 0}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: burst}
spec:
  replicas: 34
  template:
    spec:
      resourceClaims: [{name: gpu, resourceClaimTemplateName: share}]
      containers: [{name: main, resources: {claims: [{name: gpu}]}}]
"""
POD = """
apiVersion: v1
kind: Pod
metadata:
  name: one
  annotations: {ANNOTATIONS}
spec:
  nodeSelector: {SELECTOR}
  containers:
    - name: main
      resources: {limits: {nvidia.com/gpu: COUNT}}
"""


def _pod(annotations: str = "{}", selector: str = "{}", count: int = 1) -> str:
    filled = POD.replace("{ANNOTATIONS}", annotations).replace("{SELECTOR}", selector)
    return filled.replace("COUNT", str(count))


def _report(quadrant: Quadrant, *files: str | Path, release: str = "1.37") -> dict[str, Any]:
    arguments = [part for file in files for part in ("-f", file)]
    result = quadrant("simulate", *arguments, "-o", "json", "--kubernetes", release)
    assert result.exit_code == 0
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def test_a_burst_gets_what_there_is_and_not_more(
    quadrant: Quadrant, file: Callable[[str], Path]
) -> None:
    """34 shares of 7500 MiB: two a T4 and three an A10G fit; the others wait, and are told why."""
    report = _report(quadrant, INVENTORY, CLASS, file(SHARES))
    assert sorted(card["shares"] for card in report["cards"]) == [2, 2, 2, 2, 3, 3, 3, 3]
    assert len(report["placements"]) == 20
    assert len(report["pending"]) == 14
    assert "not enough memory left" in report["pending"][0]["reason"]
    assert not report["pending"][0]["refused"]


PARTS = """
apiVersion: quadrant.dev/v1alpha1
kind: Inventory
nodes:
  - {name: dgx, gpus: 2xH100-SXM, mig: dynamic}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: third}
spec:
  spec:
    devices:
      requests:
        - name: gpu
          exactly:
            deviceClassName: mig.gpu.quadrant.dev
            selectors:
              - cel: {expression: 'device.attributes["gpu.quadrant.dev"].profile == "3g.40gb"'}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: third}
spec:
  replicas: 2
  template:
    spec:
      resourceClaims: [{name: gpu, resourceClaimTemplateName: third}]
      containers: [{name: main, resources: {claims: [{name: gpu}]}}]
---
"""


@pytest.mark.parametrize(("policy", "used"), [("compact", [0, 2]), ("spread", [1, 1])])
def test_parts_of_cards_follow_the_policy(
    quadrant: Quadrant, file: Callable[[str], Path], policy: str, used: list[int]
) -> None:
    """Packed on one card, or one on each; a card that is cut is not given whole."""
    annotated = f"annotations: {{quadrant.dev/gpu-policy: {policy}}}"
    wanted = PARTS.replace(
        "template:\n    spec", f"template:\n    metadata: {{{annotated}}}\n    spec"
    )
    mig = ROOT / "deviceclasses" / "mig.yaml"
    report = _report(quadrant, file(wanted + _pod(count=2)), mig, EXTENDED)
    assert sorted(card["shares"] for card in report["cards"]) == used
    assert sorted(card["parts"] for card in report["cards"]) == used
    assert [pod["pod"] for pod in report["pending"]] == ["one"]


def test_pods_with_one_reason_stand_together(
    quadrant: Quadrant, file: Callable[[str], Path]
) -> None:
    """Fourteen times the same sentence would hide all others."""
    shown = quadrant("simulate", "-f", INVENTORY, "-f", CLASS, "-f", file(SHARES)).stdout
    assert "PENDING (14 of 34 pods)" in shown
    reason, *remedies = shown.split("PENDING (14 of 34 pods)\n")[1].splitlines()
    assert " and 11 more: t4: " in reason
    assert len(remedies) == 1
    assert remedies[0].startswith("  what would make it fit: end pods on node a10g that have")


def test_a_pod_that_names_its_node_gets_no_devices(
    quadrant: Quadrant, file: Callable[[str], Path]
) -> None:
    """No scheduler looks at it, so that nobody allocates; without claims it just runs there."""
    with_claim = _pod().replace("nodeSelector: {}", "nodeName: t4")
    without = with_claim.replace("name: one", "name: two").replace("nvidia.com/gpu: 1", "cpu: 1")
    report = _report(quadrant, INVENTORY, EXTENDED, file(f"{with_claim}---{without}"))
    assert "spec.nodeName" in report["pending"][0]["reason"]
    assert [(p["pod"], p["node"], p["devices"]) for p in report["placements"]] == [
        ("two", "t4", [])
    ]


def test_policy_none_leaves_the_schedulers_choice(
    quadrant: Quadrant, file: Callable[[str], Path]
) -> None:
    """First node in order, first card in order, and no score."""
    none = "{quadrant.dev/node-policy: none, quadrant.dev/gpu-policy: none}"
    (placement,) = _report(quadrant, INVENTORY, EXTENDED, file(_pod(none)))["placements"]
    assert (placement["node"], placement["devices"][0]["index"]) == ("t4", 0)
    said = "is none (annotation quadrant.dev/{}-policy of pod default/one)"
    assert placement["why"] == [
        f"its node is left to the scheduler: the node policy {said.format('node')}",
        f"t4/gpu-0 by the scheduler: the GPU policy {said.format('gpu')}",
    ]


def test_a_claim_shared_by_two_pods(quadrant: Quadrant) -> None:
    """The second pod follows the first to its node and its card."""
    report = _report(quadrant, INVENTORY, CLASS, EXAMPLES / "resourceclaim.yaml")
    first, second = report["placements"]
    assert first["devices"] == second["devices"]
    assert first["node"] == second["node"]
    assert sum(card["shares"] for card in report["cards"]) == 1


def test_selectors_and_policies_of_a_template(quadrant: Quadrant) -> None:
    """Only the A10G have 20 GiB; the template's annotations spread the replicas over them."""
    report = _report(quadrant, INVENTORY, CLASS, EXAMPLES / "resourceclaimtemplate.yaml")
    assert {placement["node"] for placement in report["placements"]} == {"a10g"}
    assert len({p["devices"][0]["uuid"] for p in report["placements"]}) == 3
    assert {placement["gpuPolicy"] for placement in report["placements"]} == {"spread"}


def test_the_folder_of_classes_is_taken_whole(
    quadrant: Quadrant, file: Callable[[str], Path]
) -> None:
    """What the repository ships can be given as it is: no name in it is defined twice."""
    report = _report(quadrant, INVENTORY, ROOT / "deviceclasses", file(SHARES))
    assert report["placements"]


@pytest.mark.parametrize(
    ("release", "device_class"), [("1.37", EXTENDED), ("1.36", EXTENDED), ("1.34", CLASS)]
)
def test_extended_resources(quadrant: Quadrant, release: str, device_class: Path) -> None:
    """Whole cards: by the scheduler's own claim where it makes one, else by translation."""
    manifest = EXAMPLES / "extended-resource" / "job.yaml"
    report = _report(quadrant, INVENTORY, device_class, manifest, release=release)
    assert [len(placement["devices"]) for placement in report["placements"]] == [2, 2]
    names = {device["claim"] for p in report["placements"] for device in p["devices"]}
    assert all(("-extended-resources-" in name) is (release != "1.34") for name in names)


def test_shares_need_a_release_that_has_them(quadrant: Quadrant) -> None:
    """On 1.34 the pods are refused, with what to do about it."""
    report = _report(quadrant, TWO_BY_TWO, release="1.34")
    assert report["placements"] == []
    assert {pod["refused"] for pod in report["pending"]} == {True}
    assert "DRAConsumableCapacity" in report["pending"][0]["reason"]


def test_an_unknown_policy_is_refused(quadrant: Quadrant, file: Callable[[str], Path]) -> None:
    """The reason lists the known ones."""
    pod = _pod(annotations="{quadrant.dev/gpu-policy: bestest}")
    (pending,) = _report(quadrant, INVENTORY, EXTENDED, file(pod))["pending"]
    assert pending["refused"]
    assert "'bestest' is not known: expected compact, spread" in pending["reason"]


def test_the_node_selector_decides_before_any_score(
    quadrant: Quadrant, file: Callable[[str], Path]
) -> None:
    """A node that the pod excludes is not nominated."""
    pod = _pod(selector="{kubernetes.io/hostname: a10g}")
    (placement,) = _report(quadrant, INVENTORY, EXTENDED, file(pod))["placements"]
    assert placement["node"] == "a10g"


def test_a_pod_that_no_node_can_hold_says_why(
    quadrant: Quadrant, file: Callable[[str], Path]
) -> None:
    """Nine cards are on no node, so that ending pods would not help."""
    (pending,) = _report(quadrant, INVENTORY, EXTENDED, file(_pod(count=9)))["pending"]
    assert "t4" in pending["reason"]
    assert "a10g" in pending["reason"]
    (remedy,) = pending["wouldFit"]
    assert "even if nothing were in use" in remedy


def test_what_would_make_a_pod_fit(quadrant: Quadrant, file: Callable[[str], Path]) -> None:
    """The pods that hold the cards, by name; a claim that does not exist is no matter of cards."""
    first, second = _pod(count=4), _pod(count=4).replace("name: one", "name: two")
    inventory = (
        "{apiVersion: quadrant.dev/v1alpha1, kind: Inventory, nodes: [{name: n, gpus: 4xT4}]}"
    )
    waits = (
        _pod()
        .replace("name: one", "name: claimless")
        .replace(
            "  containers:", "  resourceClaims: [{name: c, resourceClaimName: gone}]\n  containers:"
        )
    )
    files = file(f"{inventory}\n---\n{first}\n---\n{second}\n---\n{waits}")
    two, claimless = _report(quadrant, EXTENDED, files)["pending"]
    assert two["wouldFit"] == ["end pods on node n that have devices: pod default/one"]
    assert claimless["wouldFit"] == []


def test_what_is_wrong_with_the_claim_comes_first(
    quadrant: Quadrant, file: Callable[[str], Path]
) -> None:
    """Without its class nothing is known of devices: no advice to ask for less of them."""
    (pending,) = _report(quadrant, INVENTORY, file(_pod()))["pending"]
    assert "could not retrieve device class" in pending["reason"]
    (remedy,) = pending["wouldFit"]
    assert remedy.startswith("correct what the reason names first")


def test_tainted_and_full_nodes_are_left_out(
    quadrant: Quadrant, file: Callable[[str], Path]
) -> None:
    """A node's taint and its cpu count as they do for the scheduler."""
    inventory = """
apiVersion: quadrant.dev/v1alpha1
kind: Inventory
nodes:
  - {name: tainted, gpus: 1xT4, taints: [{key: spot, effect: NoSchedule}]}
  - {name: small, gpus: 1xT4, cpu: 500m}
---
apiVersion: v1
kind: Pod
metadata: {name: one}
spec:
  containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1, cpu: 1}}}]
"""
    (pending,) = _report(quadrant, EXTENDED, file(inventory))["pending"]
    assert "taint spot:NoSchedule" in pending["reason"]
    assert "too little cpu is left" in pending["reason"]


def test_a_pod_that_asks_for_no_card_is_told(
    quadrant: Quadrant, file: Callable[[str], Path]
) -> None:
    """A misspelt field is placed anywhere, without a card: that must not go unseen."""
    pod = """
apiVersion: v1
kind: Pod
metadata: {name: typo}
spec:
  containers: [{name: main, resources: {limit: {nvidia.com/gpu: 1}}}]
"""
    report = _report(quadrant, TWO_BY_TWO / "inventory.yaml", file(pod))
    assert report["warnings"] == [
        "pod typo asks for no card of this driver; a misspelt field looks the same"
    ]


def test_what_admission_says_of_replicas_is_said_once(
    quadrant: Quadrant, file: Callable[[str], Path]
) -> None:
    """With one of them, and how many there are."""
    namespace = """
apiVersion: v1
kind: Namespace
metadata: {name: default, annotations: {quadrant.dev/gpu-polcy: spread}}
"""
    inventory = TWO_BY_TWO / "inventory.yaml"
    burst = TWO_BY_TWO / "a-node-compact-gpu-compact.yaml"
    report = _report(quadrant, inventory, EXTENDED, burst, file(namespace))
    assert len(report["placements"]) == 4
    (warning,) = report["warnings"]
    assert warning.startswith("4 pods (such as demo-a-")
    assert "quadrant.dev/gpu-polcy of namespace default is not known" in warning


@pytest.mark.parametrize("resource", ["nvidia.com/gpus", "amd.com/gpu"])
def test_a_node_has_no_resource_that_nobody_gave_it(
    quadrant: Quadrant, file: Callable[[str], Path], resource: str
) -> None:
    """CPU and memory are enough where nothing is said of them; of other things there is none."""
    pod = _pod().replace(
        "nvidia.com/gpu: 1", f"nvidia.com/gpu: 1, cpu: 64, memory: 1Ti, {resource}: 1"
    )
    (pending,) = _report(quadrant, INVENTORY, EXTENDED, file(pod))["pending"]
    assert pending["reason"] == f"t4, a10g: the node has no {resource}"
    assert pending["wouldFit"] == [f"add a node that has {resource}"]


def test_what_placement_does_not_depend_on_is_counted(
    quadrant: Quadrant, file: Callable[[str], Path]
) -> None:
    """Unknown kinds are a warning on stderr; stdout stays clean."""
    services = "\n---\n".join(
        f"{{apiVersion: v1, kind: Service, metadata: {{name: s{number}}}}}" for number in range(2)
    )
    result = quadrant("simulate", "-f", INVENTORY, "-f", file(services))
    assert "warning: 2 objects of kind Service skipped" in result.stderr
    assert "Service" not in result.stdout


def test_stdin_and_lists(quadrant: Quadrant) -> None:
    """What `kubectl get -o json` prints can be piped in."""
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        for name in ("a", "b")
        for spec in [{"containers": [{"name": "c"}], "nodeSelector": None}]
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": pods})
    result = quadrant("simulate", "-f", INVENTORY, "-f", "-", "-o", "json", stdin=text)
    assert [item["pod"] for item in json.loads(result.stdout)["placements"]] == ["a", "b"]


def test_an_unknown_release_is_refused(quadrant: Quadrant) -> None:
    """Nothing is guessed about a release that is not known."""
    with pytest.raises(UsageError, match=r"--kubernetes: Kubernetes '2\.0' is not known here"):
        quadrant("simulate", "-f", TWO_BY_TWO, "--kubernetes", "2.0")


def test_the_json_is_an_interface(quadrant: Quadrant) -> None:
    """Version and names that readers rely on; a change of these needs another apiVersion."""
    result = quadrant("simulate", "-f", TWO_BY_TWO, "-o", "json")
    report = json.loads(result.stdout)
    assert (report["apiVersion"], report["kind"]) == ("quadrant.dev/v1alpha1", "Simulation")
    assert list(report) == [
        "apiVersion", "kind", "kubernetes", "policy", "metrics", "placements", "pending",
        "before", "cards", "warnings",
    ]  # fmt: skip
    assert list(report["placements"][0]) == [
        "namespace", "pod", "node", "devices", "nodePolicy", "gpuPolicy", "why",
    ]  # fmt: skip
    assert list(report["placements"][0]["devices"][0]) == [
        "claim", "request", "pool", "device", "index", "uuid", "shared", "memoryMiB", "cores",
    ]  # fmt: skip
    assert list(report["cards"][0]) == [
        "node", "device", "index", "uuid", "product", "nvlinkGroup",
        "memoryMiB", "memoryUsedMiB", "coresUsed", "shares", "parts", "exclusive",
    ]  # fmt: skip
    assert msgspec.json.decode(result.stdout, type=Report).placements
