"""The webhook configurations: the chart's are the code's, whatever the values."""

import msgspec
import pytest

from driver.admission.configuration import (
    PODS_CONFIGURATION,
    ServiceAddress,
    commit_configuration,
    configs_configuration,
    pods_configuration,
)
from driver.cli import processes
from driver.controller.translate import ResourceNames
from driver.model.names import DRIVER
from tests.helm.chart import NAMESPACE, Chart, find, options

pytestmark = pytest.mark.cluster

OTHER = "gpu.example.com"


@pytest.mark.parametrize(
    ("driver", "extended", "namespace"),
    [
        (DRIVER, "", NAMESPACE),
        (OTHER, "", "gpus"),
        (DRIVER, "nvidia.com/gpu", "a"),
        (DRIVER, "example.com/card", "z"),
    ],
)
def test_webhooks_are_those_of_the_code(
    chart: Chart, driver: str, extended: str, namespace: str
) -> None:
    """Templates and `driver.admission.configuration` make one and the same webhook."""
    values = {"driver": driver, "deviceClass": {"extendedResourceName": extended}}
    objects = chart.render(values, namespace=namespace)
    resources = {*ResourceNames().all(), *([extended] if extended else [])}
    wanted = [
        commit_configuration(_service("quadrant-commit", namespace), b"", driver=driver),
        pods_configuration(
            _service("quadrant-pods", namespace), b"", resources=resources, own_namespace=namespace
        ),
        configs_configuration(_service("quadrant-pods", namespace), b"", driver=driver),
    ]
    for configuration in wanted:
        found = find(objects, configuration["kind"], configuration["metadata"]["name"])
        # The controller fills the bundle in; a chart that names it would take it away again.
        del configuration["webhooks"][0]["clientConfig"]["caBundle"]
        assert found["webhooks"] == configuration["webhooks"]


def test_other_resource_names_reach_both_webhook_and_controller(chart: Chart) -> None:
    """A pod that asks by them is one that the API server shows us, and that we understand."""
    names = {"count": "example.com/card", "memoryPercentage": "example.com/vram-percent"}
    objects = chart.render({"controller": {"settings": {"resources": names}}})
    given = options(find(objects, "Deployment", "quadrant-controller"))["hami-resource"]
    wanted = msgspec.convert(names, ResourceNames)
    assert processes.resource_names(given) == wanted
    address = _service("quadrant-pods", NAMESPACE)
    expected = pods_configuration(address, b"", resources=wanted.all(), own_namespace=NAMESPACE)
    (webhook,) = find(objects, "MutatingWebhookConfiguration", PODS_CONFIGURATION)["webhooks"]
    assert webhook["matchConditions"] == expected["webhooks"][0]["matchConditions"]


def test_pods_of_some_namespaces_only(chart: Chart) -> None:
    """A selector narrows the hook on pods; it does not open what is never looked at."""
    term = {"key": "team", "operator": "Exists"}
    selector = {"matchLabels": {"gpus": "shared"}, "matchExpressions": [term]}
    before, after = (
        find(chart.render(values), "MutatingWebhookConfiguration", PODS_CONFIGURATION)
        for values in ({}, {"podWebhook": {"namespaceSelector": selector}})
    )
    (never,) = before["webhooks"][0]["namespaceSelector"]["matchExpressions"]
    assert after["webhooks"][0]["namespaceSelector"] == {
        "matchLabels": {"gpus": "shared"},
        "matchExpressions": [never, term],
    }


def _service(name: str, namespace: str) -> ServiceAddress:
    return ServiceAddress(namespace=namespace, name=name)
