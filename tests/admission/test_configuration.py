"""The webhook configurations: who is asked about what, and what happens when nobody answers."""

import base64
import json
from typing import Any

from driver.admission.configuration import (
    ServiceAddress,
    commit_configuration,
    configs_configuration,
    pods_configuration,
)
from driver.controller.translate import ResourceNames

URL = "https://127.0.0.1:9443/"


def hook(configuration: dict[str, Any]) -> dict[str, Any]:
    """The one webhook of a configuration."""
    (found,) = configuration["webhooks"]
    return dict(found)


def pods(*resources: str) -> dict[str, Any]:
    """The webhook for pods."""
    return hook(pods_configuration(URL, b"ca", resources=resources, own_namespace="quadrant"))


def test_commit_fails_closed_and_everywhere() -> None:
    """Every allocation passes the ledger: no namespace is left out, and no answer is a refusal."""
    found = hook(commit_configuration(URL, b"ca"))
    assert (found["failurePolicy"], found["timeoutSeconds"]) == ("Fail", 5)
    assert (found["sideEffects"], found["matchPolicy"]) == ("NoneOnDryRun", "Equivalent")
    assert not {"namespaceSelector", "objectSelector"} & set(found)
    (rule,) = found["rules"]
    assert (rule["operations"], rule["apiGroups"], rule["resources"]) == (
        ["UPDATE"],
        ["resource.k8s.io"],
        ["resourceclaims/status"],
    )


def test_pods_fail_open_and_leave_the_system_alone() -> None:
    """A pod is worth more than its gate; what runs the cluster never waits for us."""
    found = pods("nvidia.com/gpu")
    assert found["failurePolicy"] == "Ignore"
    assert found["reinvocationPolicy"] == "IfNeeded"
    assert found["namespaceSelector"]["matchExpressions"] == [
        {
            "key": "kubernetes.io/metadata.name",
            "operator": "NotIn",
            "values": ["kube-system", "quadrant"],
        }
    ]
    (rule,) = found["rules"]
    assert (rule["operations"], rule["apiGroups"], rule["resources"]) == (
        ["CREATE"],
        [""],
        ["pods"],
    )


def test_configurations_fail_open_and_only_for_us() -> None:
    """Objects without a configuration for our driver are never asked about, others may pass."""
    configuration = configs_configuration(URL, b"ca")
    found = hook(configuration)
    assert configuration["kind"] == "ValidatingWebhookConfiguration"
    assert (found["failurePolicy"], found["sideEffects"]) == ("Ignore", "None")
    assert "reinvocationPolicy" not in found
    resources = {name: rule["operations"] for rule in found["rules"] for name in rule["resources"]}
    assert resources == {
        "resourceclaims": ["CREATE"],
        "resourceclaimtemplates": ["CREATE"],
        "deviceclasses": ["CREATE", "UPDATE"],
    }
    (condition,) = found["matchConditions"]
    assert condition["expression"].count('c.opaque.driver == "gpu.quadrant.dev"') == 3


def test_resources_are_named_in_the_condition() -> None:
    """Only pods that name a claim or one of these are asked about; the order makes no change."""
    every = ResourceNames().all()
    (condition,) = pods(*every)["matchConditions"]
    assert all(json.dumps(name) in condition["expression"] for name in every)
    assert "has(object.spec.resourceClaims)" in condition["expression"]
    assert pods(*every) == pods(*reversed(every), every[0])


def test_names_are_quoted() -> None:
    """A driver's name cannot add to the condition."""
    (_, ours) = hook(commit_configuration(URL, b"ca", driver='x" || "'))["matchConditions"]
    assert r'r.driver == "x\" || \""' in ours["expression"]


def test_addresses() -> None:
    """By URL outside of the cluster, by Service inside; both trust the authority."""
    trust = base64.b64encode(b"ca").decode()
    assert pods("x")["clientConfig"] == {"url": "https://127.0.0.1:9443/pods", "caBundle": trust}
    service = ServiceAddress(namespace="quadrant", name="webhook")
    assert hook(commit_configuration(service, b"ca"))["clientConfig"] == {
        "service": {"namespace": "quadrant", "name": "webhook", "port": 443, "path": "/commit"},
        "caBundle": trust,
    }
