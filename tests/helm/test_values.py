"""The chart's values: strict, and the same as what the processes can be told."""

import json
from typing import Any

import msgspec
import pytest
import yaml

from driver.controller.settings import ControllerSettings
from driver.node.settings import NodeSettings
from tests.helm.chart import CHART, Chart, Object

SCHEMA: Object = json.loads((CHART / "values.schema.json").read_text())
VALUES: Object = yaml.safe_load((CHART / "values.yaml").read_text())

# What the chart says itself, from where the pod is and what else is installed.
DERIVED = {
    "controller": {
        "driver", "kubeconfig", "namespace", "identity", "podName", "deviceClass", "listenHost",
        "listenPort", "webhookAddresses", "certificates", "healthHost", "healthPort", "ui",
        # Not settable by the command line yet.
        "resources",
    },
    "node": {
        "nodeName", "driver", "podUid", "simulate", "kubeconfig", "pluginsDir", "registryDir",
        "metricsHost", "metricsPort",
        "mpsDir", "inventory", "attributeRules",
    },
}  # fmt: skip
# Off in the process by itself: the chart's probes need it.
ONLY_IN_PODS = {"probePort"}
SETTINGS: dict[str, type[msgspec.Struct]] = {
    "controller": ControllerSettings,
    "node": NodeSettings,
}


@pytest.mark.parametrize("process", ["controller", "node"])
def test_settings_are_those_of_the_process(process: str) -> None:
    """Every setting is a value or derived by the chart; types and defaults are the same."""
    struct = SETTINGS[process]
    (reference,), definitions = msgspec.json.schema_components([struct])
    wanted = definitions[reference["$ref"].rsplit("/", 1)[1]]["properties"]
    schema = SCHEMA["properties"][process]["properties"]["settings"]["properties"]
    assert set(schema) == set(wanted) - DERIVED[process]
    assert set(wanted) >= DERIVED[process]
    for name in schema:
        default = VALUES[process]["settings"][name]
        assert _resolve(schema[name])["type"] == _kind(default)
        if name not in ONLY_IN_PODS:
            assert default == json.loads(msgspec.json.encode(wanted[name]["default"]))
    if process == "controller":
        # Its one setting is a struct of its own.
        inner = schema["defaults"]["properties"]
        assert set(inner) == set(definitions["Defaults"]["properties"])


def _resolve(schema: Object) -> Object:
    if "$ref" in schema:
        return dict(SCHEMA["definitions"][schema["$ref"].rsplit("/", 1)[1]])
    return schema


def _kind(value: Any) -> str:
    kinds = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}
    return kinds[type(value)]


def test_every_object_of_the_schema_is_closed() -> None:
    """A misspelt name is refused at every depth; only what Kubernetes itself checks is open."""
    open_ones = [path for path, schema in _objects(SCHEMA, "") if not _closed(schema)]
    assert sorted(open_ones) == [
        "/definitions/affinity/nodeAffinity",
        "/definitions/affinity/podAffinity",
        "/definitions/affinity/podAntiAffinity",
        "/global",
    ]


def _closed(schema: Object) -> bool:
    return schema.get("additionalProperties", True) is not True


def _objects(schema: Object, path: str) -> list[tuple[str, Object]]:
    found = [(path, schema)] if schema.get("type") == "object" else []
    for name, part in schema.get("properties", {}).items():
        found += _objects(part, f"{path}/{name}")
    for name, part in schema.get("definitions", {}).items():
        found += _objects(part, f"{path}/definitions/{name}")
    if "items" in schema:
        found += _objects(schema["items"], f"{path}[]")
    return found


def test_the_schema_knows_every_value() -> None:
    """values.yaml names every property of the schema, and no other."""
    assert _names(VALUES) == _known(SCHEMA) - {"global"}


def _names(values: Object) -> set[str]:
    found = set()
    for name, value in values.items():
        # Resources are Kubernetes' own, and no values of ours.
        inner = _names(value) if isinstance(value, dict) and name != "resources" else set()
        found |= {f"{name}.{one}" for one in inner} or {name}
    return found


def _known(schema: Object) -> set[str]:
    found = set()
    for name, part in schema["properties"].items():
        inner = _known(part) if "properties" in part else set()
        found |= {f"{name}.{one}" for one in inner} or {name}
    return found


def _rule(attributes: Object) -> Object:
    return {"node": {"attributeRules": [{"match": "true", "attributes": attributes}]}}


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"controler": {}}, "'controler' not allowed"),
        ({"node": {"settings": {"sharable": True}}}, "'sharable' not allowed"),
        ({"inventory": {"simulated": {"profil": "4xT4"}}}, "'profil' not allowed"),
        ({"inventory": {"simulated": {"profile": "T4"}}}, "/inventory/simulated/profile"),
        ({"inventory": {"name": "a b"}}, "/inventory/name"),
        ({"node": {"attributeRules": [{"match": "true"}]}}, "'attributes'"),
        (_rule({"tier": 1.5}), "/node/attributeRules/0/attributes/tier"),
        (_rule({"tier": {"semver": "1.2.3"}}), "/node/attributeRules/0/attributes/tier"),
        ({"controller": {"replicas": 0}}, "/controller/replicas"),
        ({"driver": "GPU"}, "/driver"),
        ({"logLevel": "loud"}, "/logLevel"),
        ({"node": {"kubeletDir": "var/lib/kubelet"}}, "/node/kubeletDir"),
        ({"node": {"settings": {"parallelClaims": "8"}}}, "/node/settings/parallelClaims"),
        ({"image": {"digest": "latest"}}, "/image/digest"),
    ],
)
def test_helm_refuses(chart: Chart, values: Object, says: str) -> None:
    """What cannot work is refused before anything is installed, and the place is named."""
    assert says in chart.refused(values)
