"""Every option that the chart gives a process is one that it knows, with a value that it takes."""

import pytest
import typer
from typer.core import TyperCommand

from driver.cli import node, processes
from driver.model.names import DRIVER
from driver.node.settings import NodeSettings
from tests.helm.chart import Chart, Object, container, find
from tests.helm.valuesets import VALUES

pytestmark = pytest.mark.cluster

# Read by OpenTelemetry's library and by the container runtime.
OF_OTHERS = {"POD_IP", "OTEL_EXPORTER_OTLP_ENDPOINT"}


def arguments(workload: Object) -> list[str]:
    """The command line as the kubelet completes it."""
    return [one.replace("$(POD_IP)", "10.0.0.1") for one in container(workload)["args"]]


@pytest.mark.parametrize("values", VALUES)
def test_the_controller_takes_its_options(chart: Chart, values: str) -> None:
    """The command reads them, and every variable is one of its own."""
    workload = find(chart.render(VALUES[values]), "Deployment", "quadrant-controller")
    name, *given = arguments(workload)
    known = typer.main.get_command(processes.app)
    assert isinstance(known, TyperCommand)
    told = known.make_context(name, given).params
    assert name == "controller"
    assert processes.resource_names(told["hami_resource"]).count == "nvidia.com/gpu"
    variables = {option.envvar for option in known.params if option.envvar}
    assert {one["name"] for one in container(workload)["env"]} - OF_OTHERS <= variables


@pytest.mark.parametrize("values", VALUES)
def test_the_plugin_takes_its_options(
    chart: Chart, values: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command reads them, variables included, and finds nothing wrong."""
    told = plugin(chart, VALUES[values], monkeypatch)
    assert (told.node_name, told.pod_uid) == ("the-NODE_NAME", "the-POD_UID")


def test_what_is_set_arrives(chart: Chart, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each kind of value one."""
    told = plugin(chart, VALUES["ways of sharing"], monkeypatch)
    assert (told.mig, told.hami_core_dir) == ("dynamic", "/usr/local/vgpu")
    assert told.mps_dir == f"/run/{DRIVER}/mps"
    told = plugin(chart, VALUES["all else"], monkeypatch)
    assert (told.ignored_xids, told.shareable) == ((79, 94), False)
    told = plugin(chart, VALUES["seen"], monkeypatch)
    assert (told.metrics_host, told.metrics_port) == ("10.0.0.1", 8081)


def plugin(chart: Chart, values: Object, monkeypatch: pytest.MonkeyPatch) -> NodeSettings:
    """What the plugin understands of its command line and its variables."""
    workload = find(chart.render(values), "DaemonSet", "quadrant-node")
    command, *given = arguments(workload)
    assert command == "node"
    for one in container(workload)["env"]:
        monkeypatch.setenv(one["name"], one.get("value", f"the-{one['name']}"))
    told, _ = node.read(given)
    return told
