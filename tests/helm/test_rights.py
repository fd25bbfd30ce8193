"""Least rights: every call that the code makes is allowed by the chart, and nothing else is.

The calls are found in the source. Each place that talks to the API server must be in CALLS, with
the rights that it needs, so that a new call fails here before it is refused in a cluster.
"""

import ast
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

from driver.admission.configuration import (
    COMMIT_CONFIGURATION,
    CONFIGS_CONFIGURATION,
    MUTATING,
    PODS_CONFIGURATION,
    VALIDATING,
)
from driver.cli.control import LEASE, SECRET
from driver.model.names import DRIVER
from tests.helm.chart import ROOT, Chart, Object, find

pytestmark = pytest.mark.cluster

CONTROLLER, NODE = "quadrant-controller", "quadrant-node"
BOTH = (CONTROLLER, NODE)
RESOURCE_API = "resource.k8s.io"
WEBHOOKS = "admissionregistration.k8s.io"
_METHODS = {"get": "get", "pages": "list", "create": "create", "patch": "patch", "delete": "delete"}
# What every account may read (system:discovery), and what reads as whoever calls kubectl.
_FREE = {("driver/kube/discovery.py", "get"): 2}
_AS_A_PERSON = "driver/cli/"


class Right(NamedTuple):
    """One verb on one resource (or subresource), on all objects or on some by name."""

    group: str
    resource: str
    verb: str
    names: tuple[str, ...] = ()


def rights(group: str, resource: str, *verbs: str, names: tuple[str, ...] = ()) -> list[Right]:
    """Several verbs on one resource."""
    return [Right(group, resource, verb, names) for verb in verbs]


def claims(verb: str, *resources: str) -> list[Right]:
    """A verb on resources of the DRA API."""
    return [Right(RESOURCE_API, resource, verb) for resource in resources]


def webhooks(verb: str) -> list[Right]:
    """A verb on the webhook configurations of the controller."""
    asked = (COMMIT_CONFIGURATION, PODS_CONFIGURATION)
    return [
        Right(WEBHOOKS, MUTATING, verb, asked),
        Right(WEBHOOKS, VALIDATING, verb, (CONFIGS_CONFIGURATION,)),
    ]


def watched(group: str, *resources: str) -> list[Right]:
    """What an informer does."""
    return [Right(group, resource, verb) for resource in resources for verb in ("list", "watch")]


# (file, method): (who runs it, how often the file has it, what it asks for).
CALLS: dict[tuple[str, str], tuple[tuple[str, ...], int, list[Right]]] = {
    ("driver/kube/discovery.py", "create"): (
        (CONTROLLER,), 1, claims("create", "deviceclasses", "resourceslices")),
    ("driver/kube/election.py", "get"): (
        (CONTROLLER,), 1, rights("coordination.k8s.io", "leases", "get", names=(LEASE,))),
    ("driver/kube/election.py", "create"): (
        (CONTROLLER,), 1, rights("coordination.k8s.io", "leases", "create")),
    ("driver/kube/election.py", "patch"): (
        (CONTROLLER,), 2, rights("coordination.k8s.io", "leases", "patch", names=(LEASE,))),
    ("driver/kube/events.py", "create"): (BOTH, 1, rights("events.k8s.io", "events", "create")),
    ("driver/kube/events.py", "patch"): (BOTH, 1, rights("events.k8s.io", "events", "patch")),
    ("driver/controller/watches.py", "watch"): (
        (CONTROLLER,), 7,
        watched("", "nodes", "namespaces", "pods")
        + watched(RESOURCE_API, "resourceclaims", "resourceslices", "deviceclasses",
                  "devicetaintrules")),
    ("driver/controller/claims.py", "get"): ((CONTROLLER,), 1, claims("get", "resourceclaims")),
    # Allocation and reservation need `binding` since 1.36 (KEP-4817).
    ("driver/controller/claims.py", "patch"): (
        (CONTROLLER,), 2,
        claims("patch", "resourceclaims", "resourceclaims/status", "resourceclaims/binding")),
    **{
        ("driver/controller/held.py", verb): ((CONTROLLER,), 1, claims(verb, "devicetaintrules"))
        for verb in ("create", "delete")
    },
    ("driver/controller/podwriter.py", "patch"): (
        (CONTROLLER,), 1, rights("", "pods", "patch") + rights("", "pods/status", "patch")),
    ("driver/controller/strangers.py", "patch"): ((CONTROLLER,), 1, rights("", "pods", "patch")),
    ("driver/controller/leaderlabel.py", "list"): ((CONTROLLER,), 1, rights("", "pods", "list")),
    ("driver/controller/leaderlabel.py", "patch"): ((CONTROLLER,), 1, rights("", "pods", "patch")),
    **{
        ("driver/controller/templates.py", verb): (
            (CONTROLLER,), 1, claims(verb, "resourceclaimtemplates"))
        for verb in ("create", "get", "patch", "list", "delete")
    },
    ("driver/admission/lookup.py", "get"): (
        (CONTROLLER,), 1, claims("get", "resourceclaimtemplates")),
    ("driver/admission/rotation.py", "get"): (
        (CONTROLLER,), 2,
        rights("", "secrets", "get", names=(SECRET,))
        + webhooks("get")),
    ("driver/admission/rotation.py", "patch"): (
        (CONTROLLER,), 2,
        rights("", "secrets", "patch", names=(SECRET,))
        + webhooks("patch")),
    # The chart makes the Secret; the right to create one would open every account beside it.
    ("driver/admission/rotation.py", "create"): ((CONTROLLER,), 1, []),
    ("driver/node/publish.py", "watch"): ((NODE,), 1, watched(RESOURCE_API, "resourceslices")),
    ("driver/node/publish.py", "get"): ((NODE,), 1, rights("", "nodes", "get")),
    ("driver/node/publish.py", "create"): ((NODE,), 1, claims("create", "resourceslices")),
    ("driver/node/publish.py", "patch"): ((NODE,), 1, claims("patch", "resourceslices")),
    ("driver/node/publish.py", "delete"): ((NODE,), 1, claims("delete", "resourceslices")),
    ("driver/node/sharing/probe.py", "create"): ((NODE,), 1, claims("create", "resourceslices")),
    ("driver/node/cordon.py", "watch"): ((NODE,), 1, watched("", "nodes")),
    ("driver/node/statuswriter.py", "get"): ((NODE,), 1, claims("get", "resourceclaims")),
    # The devices of a driver need `driver` since 1.36 (KEP-4817).
    ("driver/node/statuswriter.py", "patch"): (
        (NODE,), 1,
        claims("patch", "resourceclaims/status")
        + rights(RESOURCE_API, "resourceclaims/driver", "associated-node:patch", names=(DRIVER,))),
    ("driver/node/cluster.py", "get"): ((NODE,), 1, claims("get", "resourceclaims")),
    ("driver/node/cluster.py", "list"): ((NODE,), 1, claims("list", "resourceclaims")),
}  # fmt: skip


def test_every_call_is_known() -> None:
    """The places that talk to the API server are those of CALLS, no more and no fewer."""
    wanted = {place: count for place, (_, count, _) in CALLS.items()} | _FREE
    assert dict(_calls()) == wanted


@pytest.mark.parametrize("account", BOTH)
def test_rights_are_what_the_calls_need(chart: Chart, account: str) -> None:
    """The chart grants to each account what its calls ask for, and nothing beyond it."""
    needed = {right for who, _, asked in CALLS.values() if account in who for right in asked}
    objects = chart.render()
    assert _granted(objects, account) == needed


@pytest.mark.parametrize("account", BOTH)
def test_rights_reach_their_account(chart: Chart, account: str) -> None:
    """Roles are bound to the account that the pods run with."""
    objects = chart.render()
    kind = {CONTROLLER: "Deployment", NODE: "DaemonSet"}[account]
    pod = find(objects, kind, account)["spec"]["template"]["spec"]
    find(objects, "ServiceAccount", pod["serviceAccountName"])
    for binding in _bindings(objects):
        (subject,) = binding["subjects"]
        role = find(objects, binding["roleRef"]["kind"], binding["roleRef"]["name"])
        assert role["metadata"].get("namespace") == binding["metadata"].get("namespace")
        assert subject["name"] == binding["metadata"]["name"]
    assert account in {binding["subjects"][0]["name"] for binding in _bindings(objects)}


def _bindings(objects: list[Object]) -> list[Object]:
    return [item for item in objects if item["kind"] in {"ClusterRoleBinding", "RoleBinding"}]


def _granted(objects: list[Object], account: str) -> set[Right]:
    roles = [
        item
        for item in objects
        if item["kind"] in {"ClusterRole", "Role"} and item["metadata"]["name"] == account
    ]
    return {
        Right(group, resource, verb, tuple(rule.get("resourceNames", ())))
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def _calls() -> Counter[tuple[str, str]]:
    """How often each file calls each method of a `Rest`, or makes an informer."""
    found: Counter[tuple[str, str]] = Counter()
    for file in sorted((ROOT / "driver").rglob("*.py")):
        path = str(file.relative_to(ROOT))
        if not path.startswith(_AS_A_PERSON) and path not in {
            "driver/kube/rest.py",
            "driver/kube/informer.py",
        }:
            found.update((path, method) for method in _methods(file))
    return found


def _methods(file: Path) -> Iterable[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.Call(func=ast.Name(id="Informer")):
                yield "watch"
            case ast.Call(
                func=ast.Attribute(
                    value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=method
                )
            ) if owner in {"rest", "_rest"} and method in _METHODS:
                yield _METHODS[method]
