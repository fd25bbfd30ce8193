"""The webhooks' certificates: whose they are, and that they are for the names that are called."""

import pytest

from driver.admission.configuration import COMMIT_CONFIGURATION
from driver.controller.settings import ControllerSettings
from tests.helm.chart import NAMESPACE, Chart, container, find, options

pytestmark = pytest.mark.cluster


def test_certificates_are_for_the_services_that_are_called(chart: Chart) -> None:
    """The names in the certificate are the names that the API server expects."""
    objects = chart.render()
    given = options(find(objects, "Deployment", "quadrant-controller"))["webhook-address"]
    settings = ControllerSettings(namespace=NAMESPACE, webhook_addresses=tuple(given))
    called = {
        f"{service['name']}.{service['namespace']}.svc"
        for item in objects
        if item["kind"].endswith("WebhookConfiguration")
        for service in [item["webhooks"][0]["clientConfig"]["service"]]
    }
    assert set(settings.webhook_hosts()) == called


def test_certificates_of_others(chart: Chart) -> None:
    """With a Secret of the user's own, the controller gets its files, and no right to make any."""
    values = {"certificates": {"secretName": "mine", "caBundle": "Y2E="}}
    objects = chart.render(values)
    deployment = find(objects, "Deployment", "quadrant-controller")
    (folder,) = options(deployment)["certificates"]
    mounts = {one["mountPath"]: one["name"] for one in container(deployment)["volumeMounts"]}
    volumes = {one["name"]: one for one in deployment["spec"]["template"]["spec"]["volumes"]}
    assert volumes[mounts[folder]]["secret"]["secretName"] == "mine"
    configuration = find(objects, "MutatingWebhookConfiguration", COMMIT_CONFIGURATION)
    assert configuration["webhooks"][0]["clientConfig"]["caBundle"] == "Y2E="
    kinds = {item["kind"] for item in objects}
    assert "Secret" not in kinds
    rules = [rule for item in objects for rule in item.get("rules", [])]
    named = {resource for rule in rules for resource in rule["resources"]}
    webhooks = {"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}
    assert not {"secrets", *webhooks} & named


def test_certificates_of_cert_manager(chart: Chart) -> None:
    """Made for the Services that are called, into the Secret that the controller reads."""
    issuer = {"kind": "Issuer", "name": "ca"}
    mine = {"secretName": "serving", "issuer": issuer, "annotations": {"a": "b"}}
    objects = chart.render({"certificates": mine}, namespace="gpus")
    certificate = find(objects, "Certificate", "quadrant-webhooks")
    assert certificate["metadata"]["namespace"] == "gpus"
    assert certificate["spec"]["secretName"] == "serving"
    assert certificate["spec"]["issuerRef"] == {"group": "cert-manager.io", **issuer}
    hooks = [one for one in objects if one["kind"].endswith("WebhookConfiguration")]
    called = {one["webhooks"][0]["clientConfig"]["service"]["name"] for one in hooks}
    assert set(certificate["spec"]["dnsNames"]) == {f"{name}.gpus.svc" for name in called}
    for hook in hooks:
        assert hook["metadata"]["annotations"] == {
            "cert-manager.io/inject-ca-from": "gpus/quadrant-webhooks",
            "a": "b",
        }
    assert "certificates.secretName" in chart.refused({"certificates": {"issuer": issuer}})
