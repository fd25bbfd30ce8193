"""The rendered chart: it says the same as the code, and what it says fits together."""

import json
from pathlib import Path, PurePosixPath

import pytest
import yaml

from driver.admission.configuration import (
    COMMIT_CONFIGURATION,
    CONFIGS_CONFIGURATION,
    PODS_CONFIGURATION,
)
from driver.cli import control
from driver.controller.leaderlabel import BORNE
from driver.model.names import DRIVER, LEADER_LABEL
from driver.model.resourceslice import DeviceAttribute
from driver.node.rules import reading as rules
from driver.node.settings import NodeSettings
from tests.helm.chart import ROOT, Chart, Object, container, find, options

pytestmark = pytest.mark.cluster

GOLDEN = Path(__file__).parent / "golden"
OTHER = "gpu.example.com"


def test_lint(chart: Chart) -> None:
    """Helm itself finds nothing."""
    assert "0 chart(s) failed" in chart.lint()


SHARING = {
    "node": {
        "timeSlicing": True,
        "mps": {"enabled": True},
        "settings": {"mig": "dynamic", "hamiCoreDir": "/usr/local/vgpu"},
    }
}


def test_the_plugin_meets_the_keeper(chart: Chart) -> None:
    """In one folder of the host, whose shared memory the keeper has as its own."""
    objects = chart.render(SHARING)
    plugin, keeper = (find(objects, "DaemonSet", f"quadrant-{name}") for name in ("node", "mps"))
    (folder,) = options(plugin)["mps-dir"]
    assert options(keeper)["mps-dir"] == [folder]
    for workload in (plugin, keeper):
        paths = {
            one["name"]: one["hostPath"]["path"]
            for one in workload["spec"]["template"]["spec"]["volumes"]
        }
        mounts = {m["mountPath"]: paths[m["name"]] for m in container(workload)["volumeMounts"]}
        assert mounts[folder] == folder
    assert mounts["/dev/shm"] == f"{folder}/shm"  # noqa: S108
    assert keeper["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert options(plugin)["hami-core-dir"] == ["/usr/local/vgpu"]


@pytest.mark.parametrize(
    ("values", "privileged"),
    [
        ({}, False),
        ({"node": {"mps": {"enabled": True}}}, False),
        ({"node": {"settings": {"mig": "static"}}}, True),
        ({"node": {"settings": {"mig": "dynamic"}}}, True),
        ({"node": {"timeSlicing": True}}, True),
        (SHARING | {"inventory": {"simulated": {"profile": "2xH100-SXM"}}}, False),
    ],
)
def test_only_a_plugin_that_changes_cards_is_privileged(
    chart: Chart, values: Object, privileged: bool
) -> None:
    """Cards that are not there need no rights."""
    plugin = find(chart.render(values), "DaemonSet", "quadrant-node")
    assert container(plugin)["securityContext"].get("privileged", False) == privileged


def test_one_driver_name_everywhere(chart: Chart) -> None:
    """Another driver name reaches every place, and ours is left in none."""
    text = json.dumps(chart.render({"driver": OTHER}))
    assert DRIVER not in text
    assert OTHER in text


def test_the_controller_finds_its_objects(chart: Chart) -> None:
    """Lease, Secret and webhook configurations have the names that the controller asks for."""
    objects = chart.render()
    find(objects, "Lease", control.LEASE)
    find(objects, "Secret", control.SECRET)
    for name in (COMMIT_CONFIGURATION, PODS_CONFIGURATION):
        find(objects, "MutatingWebhookConfiguration", name)
    find(objects, "ValidatingWebhookConfiguration", CONFIGS_CONFIGURATION)


def test_services_lead_to_the_right_pods(chart: Chart) -> None:
    """Commits go to the leader alone, pods to every replica, both to the port that listens."""
    objects = chart.render()
    pods = find(objects, "Deployment", "quadrant-controller")["spec"]["template"]
    labels = pods["metadata"]["labels"]
    selectors = {
        item["metadata"]["name"]: item["spec"]["selector"]
        for item in objects
        if item["kind"] == "Service"
    }
    assert selectors["quadrant-pods"].items() <= labels.items()
    assert selectors["quadrant-commit"] == selectors["quadrant-pods"] | {LEADER_LABEL: BORNE}
    assert LEADER_LABEL not in labels
    ports = {port["name"]: port["containerPort"] for port in pods["spec"]["containers"][0]["ports"]}
    (listening,) = options(find(objects, "Deployment", "quadrant-controller"))["listen-port"]
    for name in selectors:
        (port,) = find(objects, "Service", name)["spec"]["ports"]
        assert (port["port"], ports[port["targetPort"]]) == (443, int(listening))


def test_the_plugin_sees_the_kubelets_paths(chart: Chart) -> None:
    """The kubelet is told where sockets are: both must see them under the same path."""
    values = {"node": {"kubeletDir": "/data/kubelet", "settings": {"cdiDir": "/etc/cdi"}}}
    daemon = find(chart.render(values), "DaemonSet", "quadrant-node")
    volumes = {one["name"]: one for one in daemon["spec"]["template"]["spec"]["volumes"]}
    mounted = {
        mount["mountPath"]: mount.get("readOnly", False)
        for mount in container(daemon)["volumeMounts"]
    }
    for mount in container(daemon)["volumeMounts"]:
        assert volumes[mount["name"]]["hostPath"]["path"] == mount["mountPath"]
    given = options(daemon)
    written = {given[name][0] for name in ("plugins-dir", "registry-dir", "cdi-dir")}
    assert written == {
        "/data/kubelet/plugins", "/data/kubelet/plugins_registry", "/etc/cdi"
    }  # fmt: skip
    assert {path for path, read_only in mounted.items() if not read_only} == written
    assert set(mounted) == written | set(given["vendor-cdi-dir"])


def test_attribute_rules_reach_the_plugin_as_they_were_written(chart: Chart) -> None:
    """Also what Helm and YAML like to change: large integers, signs of HTML, text like numbers."""
    match = 'device.attributes["gpu.quadrant.dev"].index < 4 && true'
    attributes = {
        "n": 1234567890123,
        "t": "007",
        "b": False,
        "example.com/a": "<a&b>",
        "v": {"version": "1.10.0"},
    }
    rule = {"match": match, "attributes": attributes, "override": True}
    objects = chart.render({"node": {"attributeRules": [rule]}})
    daemon = find(objects, "DaemonSet", "quadrant-node")
    mounts = {mount["mountPath"]: mount["name"] for mount in container(daemon)["volumeMounts"]}
    (file,) = options(daemon)["attribute-rules"]
    volumes = {one["name"]: one for one in daemon["spec"]["template"]["spec"]["volumes"]}
    volume = volumes[mounts[str(PurePosixPath(file).parent)]]
    data = find(objects, "ConfigMap", volume["configMap"]["name"])["data"]
    (read,) = rules.read(data[PurePosixPath(file).name], driver=DRIVER).rules
    assert read.program.expression == match
    assert read.override
    assert read.attributes == {
        "n": DeviceAttribute(int_=1234567890123),
        "t": DeviceAttribute(string="007"),
        "b": DeviceAttribute(bool_=False),
        "example.com/a": DeviceAttribute(string="<a&b>"),
        "v": DeviceAttribute(version="1.10.0"),
    }


def test_another_inventory_asks_for_no_cards_of_nvidias(chart: Chart) -> None:
    """It is named to the plugin, which then needs neither NVML nor a runtime class."""
    values = {"inventory": {"name": "amdgpu"}, "node": {"runtimeClassName": "nvidia"}}
    daemon = find(chart.render(values), "DaemonSet", "quadrant-node")
    assert options(daemon)["inventory"] == ["amdgpu"]
    assert "NVIDIA_VISIBLE_DEVICES" not in {one["name"] for one in container(daemon)["env"]}
    assert "runtimeClassName" not in daemon["spec"]["template"]["spec"]
    nvml = find(chart.render({"inventory": {"name": "nvml"}}), "DaemonSet", "quadrant-node")
    assert "NVIDIA_VISIBLE_DEVICES" in {one["name"] for one in container(nvml)["env"]}


def test_a_socket_path_that_is_too_long_is_refused(chart: Chart) -> None:
    """The plugin would only crash; the chart says it before. The longest that fits is rendered."""
    room = 107 - len(f"/plugins_registry/{DRIVER}-{'u' * 36}-reg.sock")
    fits = "/" + "k" * (room - 1)
    chart.render({"node": {"kubeletDir": fits}})
    settings = NodeSettings(
        node_name="n", pod_uid="u" * 36, registry_dir=f"{fits}/plugins_registry"
    )
    settings.check()
    assert "would have 108 bytes" in chart.refused({"node": {"kubeletDir": fits + "k"}})


def test_simulated_cards_are_one_value_away(chart: Chart) -> None:
    """The value reaches the plugin, which then asks the runtime for no real card."""
    values = {
        "inventory": {"simulated": {"profile": "8xH100-SXM"}},
        "node": {"runtimeClassName": "nvidia"},
    }
    daemon = find(chart.render(values), "DaemonSet", "quadrant-node")
    assert options(daemon)["simulate"] == ["8xH100-SXM"]
    assert "NVIDIA_VISIBLE_DEVICES" not in {one["name"] for one in container(daemon)["env"]}
    assert "runtimeClassName" not in daemon["spec"]["template"]["spec"]


def test_no_process_has_more_than_it_needs(chart: Chart) -> None:
    """Read-only root, no capability, no new privilege; only the plugin is root."""
    objects = chart.render()
    for kind, name, user in (
        ("Deployment", "quadrant-controller", 65532),
        ("DaemonSet", "quadrant-node", 0),
    ):
        workload = find(objects, kind, name)
        security = container(workload)["securityContext"]
        assert security == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        pod = workload["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsUser"] == user
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)


@pytest.mark.parametrize(
    ("kind", "name"), [("Deployment", "quadrant-controller"), ("DaemonSet", "quadrant-node")]
)
def test_golden(chart: Chart, kind: str, name: str) -> None:
    """The pods as reviewed; to accept a change, write the new text into the golden file."""
    text = yaml.safe_dump(find(chart.render(), kind, name)["spec"], sort_keys=False)
    assert text == (GOLDEN / f"{name}.yaml").read_text()


def test_monitoring_is_created_on_demand_only(chart: Chart) -> None:
    """Kinds of operators that may not be there; rules and dashboard are the chart's files."""
    on = {"create": True, "labels": {"team": "gpus"}}
    metrics = {"podMonitor": on, "rules": on, "dashboard": on}
    objects = chart.render({"metrics": metrics})
    kinds = {"PodMonitor", "PrometheusRule"}
    assert kinds <= {item["kind"] for item in objects}
    assert not kinds & {item["kind"] for item in chart.render()}
    files = ROOT / "helm" / "quadrant" / "files"
    rules = find(objects, "PrometheusRule", "quadrant")
    assert rules["spec"] == yaml.safe_load((files / "rules.yaml").read_text())
    dashboard = find(objects, "ConfigMap", "quadrant-dashboard")
    assert dashboard["data"] == {"quadrant.json": (files / "dashboard.json").read_text()}
    assert (
        dashboard["metadata"]["labels"].items()
        >= {"grafana_dashboard": "1", "team": "gpus"}.items()
    )


def test_metrics_are_reached_from_where_it_is_said(chart: Chart) -> None:
    """By nobody at first; then at their own ports only, which the pods have."""
    peer = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    closed, opened = chart.render(), chart.render({"metrics": {"node": True, "from": [peer]}})
    for process, port in (("controller", "health"), ("node", "metrics")):
        name = f"quadrant-{process}"
        before = find(closed, "NetworkPolicy", name)["spec"].get("ingress", [])
        after = find(opened, "NetworkPolicy", name)["spec"]["ingress"]
        added = {"from": [peer], "ports": [{"protocol": "TCP", "port": port}]}
        assert after == [*before, added]
        kind = "Deployment" if process == "controller" else "DaemonSet"
        ports = [one["name"] for one in container(find(opened, kind, name))["ports"]]
        assert port in ports
    assert "ports" not in container(find(closed, "DaemonSet", "quadrant-node"))


def test_the_page_is_behind_a_service_only_where_it_is_said(chart: Chart) -> None:
    """By default it is on the pods' loopback address; else the flag, the Service and the peers."""
    peer = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "people"}}}
    closed, opened = chart.render(), chart.render({"ui": {"service": True, "from": [peer]}})
    for objects, shown in ((closed, False), (opened, True)):
        deployment = find(objects, "Deployment", "quadrant-controller")
        assert ("--ui" in container(deployment)["args"]) is shown
        services = [one["metadata"]["name"] for one in objects if one["kind"] == "Service"]
        assert ("quadrant-ui" in services) is shown
    before = find(closed, "NetworkPolicy", "quadrant-controller")["spec"]["ingress"]
    after = find(opened, "NetworkPolicy", "quadrant-controller")["spec"]["ingress"]
    added = {"from": [peer], "ports": [{"protocol": "TCP", "port": "health"}]}
    assert after == [*before, added]
