"""The chart's values: strict, and the same as what the processes can be told."""

import json

import msgspec
import pytest
import yaml

from driver.controller.settings import ControllerSettings
from driver.node.settings import NodeSettings
from hack.valuesschema.schema import schema
from hack.valuesschema.values import DERIVED, Values
from tests.helm.chart import CHART, Chart, Object

SCHEMA: Object = json.loads((CHART / "values.schema.json").read_text())
VALUES: Object = yaml.safe_load((CHART / "values.yaml").read_text())


def test_the_schema_is_what_the_structs_say() -> None:
    """A setting that comes, goes or changes its range is one in the chart as well."""
    assert (CHART / "values.schema.json").read_text() == schema((CHART / "values.yaml").read_text())


def test_values_yaml_says_the_defaults() -> None:
    """Every value stands there, and no other, with the default that its struct has."""
    assert _settable(json.loads(msgspec.json.encode(Values()))) == VALUES


def test_defaults_are_those_of_the_processes() -> None:
    """But for the port of the probes, which a process outside a pod has no use for."""
    for name, process in (
        ("controller", ControllerSettings()),
        ("node", NodeSettings(node_name="")),
    ):
        told = json.loads(msgspec.json.encode(process))
        for setting, default in VALUES[name]["settings"].items():
            assert default == (51516 if setting == "probePort" else told[setting])


def _settable(values: Object) -> Object:
    """What people may set: neither Helm's own part nor what the chart derives."""
    del values["global"]
    for process, struct in (("controller", "ControllerValues"), ("node", "NodeValues")):
        assert set(values[process]["settings"]) >= DERIVED[struct]
        for name in DERIVED[struct]:
            del values[process]["settings"][name]
    return values


def test_every_object_of_the_schema_is_closed() -> None:
    """A misspelt name is refused at every depth; only what Kubernetes itself checks is open."""
    open_ones = [path for path, schema in _objects(SCHEMA, "") if not _closed(schema)]
    assert sorted(open_ones) == [
        "/definitions/Affinity/nodeAffinity",
        "/definitions/Affinity/podAffinity",
        "/definitions/Affinity/podAntiAffinity",
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


def _rule(attributes: Object) -> Object:
    return {"node": {"attributeRules": [{"match": "true", "attributes": attributes}]}}


def _node(**settings: object) -> Object:
    return {"node": {"settings": settings}}


def _controller(**settings: object) -> Object:
    return {"controller": {"settings": settings}}


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
        (_node(parallelClaims=0), "/node/settings/parallelClaims"),
        (_node(quietSeconds=-1), "/node/settings/quietSeconds"),
        (_node(probePort=0), "/node/settings/probePort"),
        (_node(probePort=65536), "/node/settings/probePort"),
        (_node(ignoredXids=[0]), "/node/settings/ignoredXids/0"),
        (_node(ignoredXids=[79, 79]), "/node/settings/ignoredXids"),
        (_node(unhealthyEffect="PreferNoSchedule"), "/node/settings/unhealthyEffect"),
        (_node(mig="on"), "/node/settings/mig"),
        (_node(cdiDir="run/cdi"), "/node/settings/cdiDir"),
        (_node(hamiCoreDir="usr/local/vgpu"), "/node/settings/hamiCoreDir"),
        (_node(nodeName="a"), "'nodeName' not allowed"),
        (_controller(defaults={"node": ""}), "/controller/settings/defaults/node"),
        (_controller(defaults={"gpu": "Compact"}), "/controller/settings/defaults/gpu"),
        (_controller(defaults={"weights": "slots=1"}), "/controller/settings/defaults/weights"),
        (_controller(defaults={"Node": "spread"}), "'Node' not allowed"),
        (_controller(resources={"memory": "vram"}), "/controller/settings/resources/memory"),
        (_controller(resources={"vram": "a.b/vram"}), "'vram' not allowed"),
        (_controller(resources={"memory": "nvidia.com/gpu"}), "must be different names"),
        ({"podWebhook": {"namespaceSelector": {"labels": {}}}}, "'labels' not allowed"),
        ({"metrics": {"from": [{}]}}, "/metrics/from/0"),
        ({"certificates": {"issuer": {"kind": "Vault"}}}, "/certificates/issuer/kind"),
    ],
)
def test_helm_refuses(chart: Chart, values: Object, says: str) -> None:
    """What cannot work is refused before anything is installed, and the place is named."""
    assert says in chart.refused(values)
