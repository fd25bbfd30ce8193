"""The webhook configurations as objects of the API: what the API server asks us, and when.

It knows which requests matter and how they are told apart, not how they are decided.
Source of every field: `k8s.io/api/admissionregistration/v1`.
"""

import base64
from collections.abc import Iterable
from typing import Any

import msgspec

from driver.controller.extended import IMPLICIT_PREFIX
from driver.controller.translate_selectors import quoted
from driver.model import names

COMMIT_CONFIGURATION = "quadrant-commit"
PODS_CONFIGURATION = "quadrant-pods"
CONFIGS_CONFIGURATION = "quadrant-configs"
COMMIT_PATH = "/commit"
PODS_PATH = "/pods"
CONFIGS_PATH = "/configs"
MUTATING = "mutatingwebhookconfigurations"
VALIDATING = "validatingwebhookconfigurations"
TIMEOUT_SECONDS = 5
_NAMESPACE_LABEL = "kubernetes.io/metadata.name"


class ServiceAddress(msgspec.Struct, frozen=True, kw_only=True):
    """A Service in the cluster that leads to the webhooks."""

    namespace: str
    name: str
    port: int = 443


Address = ServiceAddress | str
"""A Service, or the start of a URL ("https://127.0.0.1:9443")."""


def commit_configuration(
    address: Address, authorities: bytes, *, driver: str = names.DRIVER
) -> dict[str, Any]:
    """The hook at which the scheduler's choice of devices is replaced.

    It fails closed: with the hook skipped, a device swapped a moment ago can collide with a choice
    that is still on its way. No namespace is left out: every allocation must pass the ledger.
    """
    webhook = {
        **_mutating("commit", address, COMMIT_PATH, authorities),
        "failurePolicy": "Fail",
        "rules": [_rule(["UPDATE"], "resource.k8s.io", "resourceclaims/status")],
        "matchConditions": [
            {"name": "newly-allocated", "expression": _NEWLY_ALLOCATED},
            {"name": "our-driver", "expression": _our_driver(driver)},
        ],
    }
    return _configuration(COMMIT_CONFIGURATION, webhook)


def pods_configuration(
    address: Address, authorities: bytes, *, resources: Iterable[str], own_namespace: str
) -> dict[str, Any]:
    """The hook at which pods are looked at as they are created.

    `resources` are the extended resource names that lead to our devices: HAMi's, and those of our
    DeviceClasses. It fails open: without it only the node axis is lost.
    """
    webhook = {
        **_mutating("pods", address, PODS_PATH, authorities),
        "failurePolicy": "Ignore",
        "rules": [_rule(["CREATE"], "", "pods")],
        "namespaceSelector": {
            "matchExpressions": [
                {
                    "key": _NAMESPACE_LABEL,
                    "operator": "NotIn",
                    "values": sorted({"kube-system", own_namespace}),
                }
            ]
        },
        "matchConditions": [
            {"name": "asks-for-devices", "expression": _asks_for_devices(resources)}
        ],
    }
    return _configuration(PODS_CONFIGURATION, webhook)


def configs_configuration(
    address: Address, authorities: bytes, *, driver: str = names.DRIVER
) -> dict[str, Any]:
    """The hook at which configurations for our driver are read as they are written.

    It fails open: they are read again before a claim is prepared. Objects without one for our
    driver never wait for us.
    """
    claims = _rule(["CREATE"], "resource.k8s.io", "resourceclaims", "resourceclaimtemplates")
    classes = _rule(["CREATE", "UPDATE"], "resource.k8s.io", "deviceclasses")
    webhook = {
        **_webhook("configs", address, CONFIGS_PATH, authorities),
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "rules": [claims, {**classes, "scope": "Cluster"}],
        "matchConditions": [{"name": "configures-our-driver", "expression": _configures(driver)}],
    }
    return _configuration(CONFIGS_CONFIGURATION, webhook, kind="ValidatingWebhookConfiguration")


_NEWLY_ALLOCATED = (
    "(!has(oldObject.status) || !has(oldObject.status.allocation))"
    " && has(object.status) && has(object.status.allocation)"
)


def _our_driver(driver: str) -> str:
    # The conditions are evaluated one by one, so this one must hold on objects without a status.
    return (
        "has(object.status) && has(object.status.allocation)"
        " && has(object.status.allocation.devices)"
        " && has(object.status.allocation.devices.results)"
        f" && object.status.allocation.devices.results.exists(r, r.driver == {quoted(driver)})"
    )


def _configures(driver: str) -> str:
    """Of a class, a claim, a template: whether one of its configurations is for our driver."""
    ours = f"exists(c, has(c.opaque) && c.opaque.driver == {quoted(driver)})"
    lists = (
        (("spec",), "config"),
        (("spec", "devices"), "config"),
        (("spec", "spec", "devices"), "config"),
    )
    return " || ".join(_in_list(path, name, ours) for path, name in lists)


def _in_list(path: tuple[str, ...], name: str, test: str) -> str:
    steps = [".".join(("object", *path[: n + 1])) for n in range(1, len(path))]
    place = ".".join(("object", *path, name))
    present = " && ".join(f"has({step})" for step in (*steps, place))
    return f"({present} && {place}.{test})"


def _asks_for_devices(resources: Iterable[str]) -> str:
    listed = "[" + ", ".join(quoted(name) for name in sorted(set(resources))) + "]"
    wanted = f"(n in {listed} || n.startsWith({quoted(IMPLICIT_PREFIX)}))"
    asks = " || ".join(
        f"(has(c.resources.{part}) && c.resources.{part}.exists(n, {wanted}))"
        for part in ("limits", "requests")
    )
    containers = " || ".join(
        f"(has(object.spec.{part}) && object.spec.{part}.exists(c, has(c.resources) && ({asks})))"
        for part in ("containers", "initContainers")
    )
    return f"has(object.spec.resourceClaims) || {containers}"


def _configuration(
    name: str, webhook: dict[str, Any], *, kind: str = "MutatingWebhookConfiguration"
) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "quadrant"}},
        "webhooks": [webhook],
    }


def _webhook(name: str, address: Address, path: str, authorities: bytes) -> dict[str, Any]:
    return {
        "name": f"{name}.{names.DOMAIN}",
        "admissionReviewVersions": ["v1"],
        "clientConfig": _client(address, path, authorities),
        "matchPolicy": "Equivalent",
        "timeoutSeconds": TIMEOUT_SECONDS,
    }


def _mutating(name: str, address: Address, path: str, authorities: bytes) -> dict[str, Any]:
    return {
        **_webhook(name, address, path, authorities),
        # Another webhook may change the object after us. Both hooks give the same answer again.
        "reinvocationPolicy": "IfNeeded",
        "sideEffects": "NoneOnDryRun",
    }


def _client(address: Address, path: str, authorities: bytes) -> dict[str, Any]:
    trust = {"caBundle": base64.b64encode(authorities).decode()}
    if isinstance(address, str):
        return {"url": address.rstrip("/") + path, **trust}
    service = {
        "namespace": address.namespace,
        "name": address.name,
        "port": address.port,
        "path": path,
    }
    return {"service": service, **trust}


def _rule(operations: list[str], group: str, *resources: str) -> dict[str, Any]:
    return {
        "operations": operations,
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "resources": list(resources),
        "scope": "Namespaced",
    }
