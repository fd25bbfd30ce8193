"""`doctor` on an installation that is well, and with one thing wrong at a time."""

import base64
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib import metadata
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from driver.admission.authority import new_authority
from driver.cli.checkup import rights
from driver.cli.checkup.evidence import POLICIES as POLICIES_LOOKED_FOR
from driver.cli.doctor import UnhealthyError
from driver.model import names
from tests.cli.conftest import ROOT
from tests.cli.livecluster import CLASSES, NODES, PODS, SLICES, LiveCluster
from tests.controller.commits import CLASS, DRIVER, Json, gpu
from tests.kube.objects import Change, Refusal

HOME = "quadrant-system"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
LEASES = "/apis/coordination.k8s.io/v1/leases"
APPS, ENDPOINTS = "/apis/apps/v1", "/apis/discovery.k8s.io/v1/endpointslices"
ACCOUNTS, REVIEWS = "/api/v1/serviceaccounts", "/apis/authorization.k8s.io/v1"
POLICY_NAMES = ("quadrant-node-slices", "quadrant-node-claims", "quadrant-controller-probes")
LABELS = {"app.kubernetes.io/name": "quadrant"}


def authority(now: datetime) -> str:
    """What a webhook configuration trusts."""
    return base64.b64encode(new_authority("test", now=now).certificate).decode()


def webhook(name: str, policy: str, now: datetime | None = None) -> Json:
    """One configuration, as the chart makes it."""
    service = {"namespace": HOME, "name": name}
    client = {"service": service, "caBundle": authority(now or datetime.now(UTC))}
    return {
        "metadata": {"name": name},
        "webhooks": [{"clientConfig": client, "failurePolicy": policy}],
    }


def pod(
    name: str, component: str, *, node: str = "", ready: bool = True, leads: bool = False
) -> Json:
    """A pod of the installation."""
    found = {**LABELS, "app.kubernetes.io/component": component}
    if leads:
        found[names.LEADER_LABEL] = "true"
    condition = {"type": "Ready", "status": str(ready)}
    return {
        "metadata": {"name": name, "namespace": HOME, "labels": found},
        "spec": {"nodeName": node, "containers": [{"name": "main"}]},
        "status": {"conditions": [condition]},
    }


def lease(holder: str, *, age: float = 1.0) -> Json:
    """Who leads, and when he said so last."""
    renewed = (datetime.now(UTC) - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}
    return {"metadata": {"name": "quadrant-controller", "namespace": HOME}, "spec": spec}


def install(live: LiveCluster) -> None:
    """Everything that the chart installs, on two nodes, and an API server that answers reviews."""
    put = live.server.put
    live.node("a", [gpu(0), gpu(1)])
    live.node("b", [gpu(0), gpu(1)])
    for name, policy in (("quadrant-commit", "Fail"), ("quadrant-pods", "Ignore")):
        put(WEBHOOKS, webhook(name, policy))
        label = {"kubernetes.io/service-name": name}
        slice_ = {"metadata": {"name": f"{name}-1", "namespace": HOME, "labels": label}}
        put(ENDPOINTS, slice_ | {"endpoints": [{"conditions": {"ready": True}}]})
    put(VALIDATING, webhook("quadrant-configs", "Ignore"))
    label = {"kubernetes.io/service-name": "quadrant-configs"}
    slice_ = {"metadata": {"name": "quadrant-configs-1", "namespace": HOME, "labels": label}}
    put(ENDPOINTS, slice_ | {"endpoints": [{}]})
    for name in POLICY_NAMES:
        put(POLICIES, {"metadata": {"name": name}})
    put(LEASES, lease("quadrant-controller-0_1234"))
    put(PODS, pod("quadrant-controller-0", "controller", leads=True))
    put(PODS, pod("quadrant-controller-1", "controller"))
    for node in ("a", "b"):
        put(PODS, pod(f"plugin-{node}", "node", node=node))
    version = {"app.kubernetes.io/version": metadata.version("quadrant-dra"), **LABELS}
    for kind, name in (("deployments", "quadrant-controller"), ("daemonsets", "quadrant-node")):
        put(
            f"{APPS}/{kind}",
            {"metadata": {"name": name, "namespace": HOME, "labels": version}},
        )
    for account in ("quadrant-controller", "quadrant-node"):
        put(ACCOUNTS, {"metadata": {"name": account, "namespace": HOME}})
    answer_reviews(live, lambda _: True)
    live.server.objects.admission[PODS] = gated
    live.server.objects.admission[SLICES] = lambda _, new: new


def gated(old: Json | None, new: Json) -> Json:
    """What our webhook does to a pod that names claims."""
    if old is None and new["spec"].get("resourceClaims"):
        new["spec"]["schedulingGates"] = [{"name": names.PLACEMENT_GATE}]
    return new


def answer_reviews(live: LiveCluster, allowed: Callable[[Json], bool]) -> None:
    """The authoriser."""
    for kind in ("selfsubjectaccessreviews", "subjectaccessreviews"):
        live.server.objects.admission[f"{REVIEWS}/{kind}"] = lambda _, new: (
            new | {"status": {"allowed": allowed(new["spec"])}}
        )
    live.server.objects.listeners.append(lambda change: _forget(live, change))


def _forget(live: LiveCluster, change: Change) -> None:
    """Nobody keeps a review."""
    if REVIEWS in change.key.collection:
        live.server.objects.objects.pop(change.key, None)


async def findings(live: LiveCluster) -> dict[str, tuple[str, str, str]]:
    """The worst of each check: level, what is said, what to do."""
    done = await live.run("doctor", "-o", "json")
    found = json.loads(done.stdout)
    order = ["skip", "ok", "warn", "fail"]
    worst: dict[str, tuple[str, str, str]] = {}
    for one in sorted(found["findings"], key=lambda one: order.index(one["level"])):
        worst[one["check"]] = (one["level"], one["said"], one["todo"])
    fails = any(level == "fail" for level, _, _ in worst.values())
    assert done.exit_code == int(fails)
    assert found["healthy"] is not fails
    assert isinstance(done.exception, UnhealthyError) is fails
    return worst


async def test_all_is_well(live: LiveCluster) -> None:
    """Every check says so, and nothing was written."""
    install(live)
    before = live.server.objects.version
    done = await live.run("doctor")
    assert done.exit_code == 0, done.stdout
    # The fake server counts a review as a version.
    assert live.server.objects.version - before == reviews(live)
    lines = done.stdout.splitlines()
    assert lines[-1].startswith("healthy: ")
    assert all(line.startswith("ok ") for line in lines[:-1])
    assert "quadrant-controller-0 leads, 2 of 2 replicas ready" in done.stdout
    assert "4 devices" in done.stdout


def reviews(live: LiveCluster) -> int:
    """How many access reviews were asked for."""
    return sum("accessreviews" in line for line in live.server.requests)


def _put(collection: str, item: Json) -> Callable[[LiveCluster], object]:
    return lambda live: live.server.put(collection, item)


def _remove(collection: str, name: str, namespace: str = "") -> Callable[[LiveCluster], object]:
    return lambda live: live.server.remove(collection, name, namespace)


def _incomplete(live: LiveCluster) -> None:
    item = live.server.get(SLICES, "a-slice")
    pool = item["spec"]["pool"] | {"resourceSliceCount": 3}
    live.server.put(SLICES, item | {"spec": item["spec"] | {"pool": pool}})


def _device_plugin(node: str) -> Callable[[LiveCluster], object]:
    item = {"metadata": {"name": node}, "status": {"allocatable": {"nvidia.com/gpu": "4"}}}
    return lambda live: live.server.put(NODES, item)


def _no_webhook(live: LiveCluster) -> None:
    del live.server.objects.admission[PODS]


def _empty_bundle(live: LiveCluster) -> None:
    item = webhook("quadrant-commit", "Fail")
    item["webhooks"][0]["clientConfig"]["caBundle"] = ""
    live.server.put(WEBHOOKS, item)


def _late_pod(live: LiveCluster) -> None:
    live.pod("late", gated=True)


def _no_right(what: str) -> Callable[[LiveCluster], object]:
    def forbid(live: LiveCluster) -> None:
        def allowed(spec: Json) -> bool:
            return "user" not in spec or spec["resourceAttributes"]["resource"] != what

        answer_reviews(live, allowed)

    return forbid


LONG_AGO = datetime.now(UTC) - timedelta(days=4000)
SLICE_OF_NOWHERE = {
    "metadata": {"name": "gone"},
    "spec": {
        "driver": DRIVER, "nodeName": "gone", "devices": [gpu(0)],
        "pool": {"name": "gone", "generation": 1, "resourceSliceCount": 1},
    },
}  # fmt: skip


def annotated(name: str, key: str) -> Json:
    """An object with an annotation of our domain."""
    return {"metadata": {"name": name, "annotations": {f"{names.DOMAIN}/{key}": "gpu-1"}}}


BAD_CLASS = {
    "metadata": {"name": CLASS},
    "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}' &&"}}]},
}


@pytest.mark.parametrize(
    ("breaks", "check", "level", "said"),
    [
        (_incomplete, "slices", "fail", "pool a: 1 of 3 slices of generation 1 are there"),
        (_put(SLICES, SLICE_OF_NOWHERE), "slices", "warn", "node gone, which does not exist"),
        (_remove(CLASSES, CLASS), "device classes", "fail", f"there is no class {DRIVER}"),
        (_put(CLASSES, BAD_CLASS), "device classes", "fail", "a selector cannot be read"),
        (_device_plugin("a"), "device plugin", "fail", "published here too: a (nvidia.com/gpu)"),
        (_device_plugin("c"), "device plugin", "warn", "other nodes have a device plugin"),
        (_put(PODS, pod("plugin-b", "node", node="b", ready=False)), "node plugins", "fail",
         "not ready on b"),
        (_put(PODS, pod("plugin-c", "node", node="c")), "node plugins", "warn",
         "publishes nothing on c"),
        (_remove(VALIDATING, "quadrant-configs"), "webhook quadrant-configs", "warn",
         "there is no"),
        (_remove(WEBHOOKS, "quadrant-pods"), "webhook quadrant-pods", "fail", "there is no"),
        (_put(WEBHOOKS, webhook("quadrant-commit", "Ignore")), "webhook quadrant-commit", "fail",
         "two pods may get one card"),
        (_put(WEBHOOKS, webhook("quadrant-commit", "Fail", LONG_AGO)), "webhook quadrant-commit",
         "fail", "has expired"),
        (_empty_bundle, "webhook quadrant-commit", "fail", "caBundle is empty"),
        (_remove(ENDPOINTS, "quadrant-commit-1", HOME), "webhook quadrant-commit", "fail",
         "nobody is behind Service quadrant-system/quadrant-commit"),
        (_no_webhook, "pod webhook (dry run)", "fail", "gets no gate"),
        (_remove(LEASES, "quadrant-controller", HOME), "lease", "fail", "no controller has ever"),
        (_put(LEASES, lease("")), "lease", "fail", "nobody leads"),
        (_put(LEASES, lease("quadrant-controller-0_1234", age=60)), "lease", "fail",
         " s ago, and nobody has taken over"),
        (_put(LEASES, lease("other_1")), "leader", "warn", "other_1 holds the lease"),
        (_put(PODS, pod("quadrant-controller-0", "controller")), "leader", "fail",
         "0 of 2 controller pods carry"),
        (_put(PODS, pod("quadrant-controller-1", "controller", ready=False)), "leader", "warn",
         "1 of 2 replicas are ready"),
        (_put(f"{APPS}/daemonsets", {"metadata": {"name": "quadrant-node", "namespace": HOME,
         "labels": {**LABELS, "app.kubernetes.io/version": "0.0.1"}}}), "versions", "warn",
         "quadrant-node 0.0.1"),
        (_remove(POLICIES, "quadrant-node-slices"), "admission policy", "warn",
         "no ValidatingAdmissionPolicy quadrant-node-slices"),
        (_late_pod, "gated pods", "fail", "the first is ns/late"),
        (_put(NODES, annotated("a", "cordonned")), "annotations", "warn",
         "quadrant.dev/cordonned of Node a is not known; did you mean quadrant.dev/cordoned?"),
        (_put("/api/v1/namespaces", annotated("team", "gpu-polcy")), "annotations", "warn",
         "quadrant.dev/gpu-polcy of Namespace team is not known"),
        (_no_right("leases"), "rights of quadrant-controller", "fail",
         "get, patch, create leases.coordination.k8s.io"),
        (_no_right("resourceslices"), "rights of quadrant-node", "fail", "it may not"),
    ],
)  # fmt: skip
async def test_one_thing_is_wrong(  # noqa: PLR0917 - one for each column
    live: LiveCluster, breaks: Callable[[LiveCluster], object], check: str, level: str, said: str
) -> None:
    """It is found, told, and comes with something to do."""
    install(live)
    breaks(live)
    found = await findings(live)
    assert found[check][0] == level, found[check]
    assert said in found[check][1]
    assert found[check][2]


async def test_a_cluster_without_quadrant(live: LiveCluster) -> None:
    """Everything is missing, and the checklist is whole all the same."""
    answer_reviews(live, lambda _: True)
    found = await findings(live)
    assert {check for check, (level, _, _) in found.items() if level == "fail"} >= {
        "slices", "webhook quadrant-commit", "webhook quadrant-pods", "lease",
    }  # fmt: skip


async def test_who_may_little_sees_what_is_not_looked_at(live: LiveCluster) -> None:
    """A missing right hides its own line only, and is named."""
    install(live)
    hidden = ("mutatingwebhookconfigurations", "leases", "serviceaccounts", "endpointslices")
    for path in (*hidden, "namespaces"):
        live.forbid(path)
    answer_reviews(live, lambda spec: spec["resourceAttributes"]["verb"] != "list")
    found = await findings(live)
    assert found["lease"][0] == "skip"
    assert found["webhooks"][0] == "skip"
    assert found["rights of quadrant-node"][0] == "skip"
    assert found["lease"][1] == "you may not list leases"
    assert found["annotations"][:2] == ("skip", "you may not list namespaces")
    assert found["slices"][0] == "ok"
    assert found["your rights"][0] == "warn"
    assert "list resourceslices.resource.k8s.io" in found["your rights"][1]


async def test_an_older_kubernetes(live: LiveCluster) -> None:
    """Which gates are off is a warning; who may not probe for them is told the release's."""
    install(live)
    live.server.documents["/version"] = {"gitVersion": "v1.34.4"}
    refusal = Refusal(403, "Forbidden", "cannot create").status()
    live.server.faults.append(
        lambda request: (
            web.json_response(refusal, status=403)
            if request.method == "POST" and "resource.k8s.io" in request.path
            else None
        )
    )
    level, said, _ = (await findings(live))["kubernetes"]
    assert level == "warn"
    assert "v1.34.4 without DRAConsumableCapacity (shares)" in said


def chart_rights(file: str) -> set[tuple[str, str, str]]:
    """Verb, group and resource of each rule in a file of the chart."""
    text = Path(ROOT / "helm" / "quadrant" / "templates" / file).read_text("utf-8")
    rule = re.compile(
        r"- apiGroups: \[(.*?)\]\s+resources: \[(.*?)\]\s+(?:resourceNames: \[.*?\]\s+)?"
        r"verbs: \[(.*?)\]"
    )
    found: set[tuple[str, str, str]] = set()
    for groups, resources, verbs in rule.findall(text):
        parts = ([one.strip().strip('"') for one in part.split(",")] for part in
                 (verbs, groups, resources))  # fmt: skip
        found |= set(product(*parts))
    return found


def known(*lists: Any) -> set[tuple[str, str, str]]:
    """The same of the lists that doctor goes through."""
    return {
        (one.verb, one.group, f"{one.resource}/{one.subresource}".rstrip("/"))
        for part in lists
        for one in part
    }


def test_the_policies_are_those_of_the_chart() -> None:
    """And nothing is said of one that is not there any more."""
    text = Path(ROOT / "helm" / "quadrant" / "templates" / "admission-policies.yaml").read_text()
    found = re.findall(r"kind: ValidatingAdmissionPolicy\nmetadata:\n  name: (.*)\n", text)
    assert sorted(found) == sorted(POLICIES_LOOKED_FOR)


def test_the_rights_are_those_of_the_chart() -> None:
    """Whoever changes the chart's RBAC changes what doctor asks for."""
    certificates = {
        "secrets", "mutatingwebhookconfigurations", "validatingwebhookconfigurations",
    }  # fmt: skip
    controller = {one for one in chart_rights("rbac-controller.yaml") if one[2] not in certificates}
    assert known(rights.CONTROLLER, rights.CONTROLLER_HOME) == controller
    assert known(rights.NODE) == chart_rights("rbac-node.yaml")
