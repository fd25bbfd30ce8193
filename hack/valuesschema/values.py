"""The chart's values: every name, type, default and range that values.yaml may have.

What the processes can be told comes from their own settings (`driver.controller.settings`,
`driver.node.settings`); what stands here is only the chart's.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from driver.controller.policies import Defaults
from driver.controller.settings import ControllerSettings
from driver.model.names import DRIVER
from driver.node.settings import NodeSettings
from hack.valuesschema.kubernetes import (
    Affinity,
    Labels,
    Peers,
    Resources,
    Selector,
    Toleration,
)

# Set by the chart itself, from where a pod is and from other values.
DERIVED: Mapping[str, frozenset[str]] = {
    "ControllerValues": frozenset({
        "driver", "kubeconfig", "namespace", "identity", "podName", "deviceClass", "listenHost",
        "listenPort", "webhookAddresses", "certificates", "healthHost", "healthPort", "ui",
    }),
    "NodeValues": frozenset({
        "nodeName", "driver", "podUid", "simulate", "inventory", "attributeRules", "kubeconfig",
        "pluginsDir", "registryDir", "mpsDir", "metricsHost", "metricsPort",
    }),
}  # fmt: skip

_POLICY = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_WEIGHT = r"(slot|core|memory) *= *[0-9]*\.?[0-9]+"
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"

Policies = Annotated[str, Meta(pattern=f"^{_POLICY}( *, *{_POLICY})*$", max_length=128)]
Weights = Annotated[str, Meta(pattern=f"^({_WEIGHT}( *, *{_WEIGHT})*)?$", max_length=128)]
# Where a container sees a folder: no colon, and no end by which two would differ that are one.
Folder = Annotated[str, Meta(pattern="^/[^:]*[^/:]$")]
Name = Annotated[str, Meta(pattern="^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$", max_length=253)]
Duration = Annotated[str, Meta(pattern="^[1-9][0-9]*(ms|s|m|h)$")]
# The kubelet's registration socket carries it, so it must be short.
DriverName = Annotated[str, Meta(pattern=rf"^{_LABEL}(\.{_LABEL})*$", max_length=63)]
# In lower case, and with dashes for spaces, it is a part of a class's name.
Model = Annotated[str, Meta(pattern="^[A-Za-z0-9]([-A-Za-z0-9 ]*[A-Za-z0-9])?$", max_length=63)]
MigProfile = Annotated[
    str, Meta(pattern=r"^[1-9][0-9]*g\.[1-9][0-9]*gb([-+][a-z]+(\.[a-z]+)*)?$", max_length=63)
]
Distinct = Meta(extra_json_schema={"uniqueItems": True})

_CONTROLLER = ControllerSettings()
_NODE = NodeSettings(node_name="")


class _Values(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A group of values."""


class PolicyValues(Defaults, frozen=True, forbid_unknown_fields=True):
    """Policies, as far as their form goes; the controller knows which there are."""

    node: Policies = _CONTROLLER.defaults.node
    gpu: Policies = _CONTROLLER.defaults.gpu
    weights: Weights = _CONTROLLER.defaults.weights


class ControllerValues(ControllerSettings, frozen=True):
    """The controller's settings."""

    defaults: PolicyValues = PolicyValues()


class NodeValues(NodeSettings, frozen=True):
    """The plugin's settings; in a pod some of them are narrower."""

    node_name: str = ""
    hami_core_dir: Annotated[str, Meta(pattern="^(/.*)?$")] = _NODE.hami_core_dir
    ignored_xids: Annotated[tuple[Annotated[int, Meta(ge=1)], ...], Distinct] = _NODE.ignored_xids
    # The pod's probes ask there.
    probe_port: Annotated[int, Meta(ge=1, le=65535)] = 51516
    cdi_dir: Folder = _NODE.cdi_dir
    vendor_cdi_dirs: Annotated[tuple[Folder, ...], Distinct] = _NODE.vendor_cdi_dirs


class Image(_Values, frozen=True):
    """The image of all pods."""

    repository: Annotated[str, Meta(min_length=1)] = "quadrant"
    tag: str = ""
    digest: Annotated[str, Meta(pattern="^(sha256:[0-9a-f]{64})?$")] = ""
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    pull_secrets: list[Annotated[str, Meta(min_length=1)]] = []


class Simulated(_Values, frozen=True):
    """Cards that are not there."""

    profile: Annotated[str, Meta(pattern="^([1-9][0-9]*x[A-Za-z0-9-]+)?$")] = ""


class Inventory(_Values, frozen=True):
    """Where cards come from."""

    name: Annotated[str, Meta(pattern="^[A-Za-z0-9._-]*$")] = ""
    simulated: Simulated = Simulated()


class DeviceClass(_Values, frozen=True):
    """The DeviceClasses."""

    create: bool = True
    models: Annotated[list[Model], Distinct] = []
    mig_profiles: Annotated[list[MigProfile], Distinct] = []
    extended_resource_name: Annotated[str, Meta(pattern="^([a-z0-9.-]+/[A-Za-z0-9._-]+)?$")] = ""
    beside_device_plugin: bool = False


class PodWebhook(_Values, frozen=True):
    """The hook on pods."""

    namespace_selector: Selector = Selector()


class Issuer(_Values, frozen=True):
    """Of cert-manager."""

    name: Name = ""
    kind: Literal["Issuer", "ClusterIssuer"] = "ClusterIssuer"


class Certificates(_Values, frozen=True):
    """What the webhooks serve with."""

    secret_name: Name = ""
    issuer: Issuer = Issuer()
    ca_bundle: Annotated[str, Meta(pattern="^[A-Za-z0-9+/=]*$")] = ""
    annotations: Labels = {}


class Pods(_Values, frozen=True):
    """Where pods run."""

    node_selector: Labels = {}
    tolerations: tuple[Toleration, ...] = ()
    affinity: Affinity = Affinity()


class Controller(Pods, frozen=True):
    """The Deployment."""

    replicas: Annotated[int, Meta(ge=1)] = 2
    settings: ControllerValues = ControllerValues()
    priority_class_name: Name = "system-cluster-critical"
    resources: Resources = Resources(requests={"cpu": "100m", "memory": "256Mi"})


class Version(_Values, frozen=True):
    """An attribute that is compared as a version."""

    version: str


class AttributeRule(_Values, frozen=True):
    """Attributes for some devices; docs/node-plugin.md."""

    match: str
    attributes: dict[str, str | int | bool | Version]
    override: bool = False


class Mps(_Values, frozen=True):
    """The keeper of MPS daemons."""

    enabled: bool = False
    resources: Resources = Resources(requests={"cpu": "50m", "memory": "128Mi"})


class Node(Pods, frozen=True):
    """The DaemonSets."""

    settings: NodeValues = NodeValues()
    time_slicing: bool = False
    mps: Mps = Mps()
    attribute_rules: Annotated[list[AttributeRule], Meta(max_length=100)] = []
    kubelet_dir: Folder = "/var/lib/kubelet"
    runtime_class_name: Name = ""
    priority_class_name: Name = "system-node-critical"
    resources: Resources = Resources(requests={"cpu": "50m", "memory": "128Mi"})
    tolerations: tuple[Toleration, ...] = (Toleration(operator="Exists"),)


class NetworkPolicy(_Values, frozen=True):
    """Who may reach the pods."""

    create: bool = True


class Ui(_Values, frozen=True):
    """The page."""

    service: bool = False
    peers: Peers = field(name="from", default_factory=list)


class PodMonitor(_Values, frozen=True):
    """An object of the Prometheus Operator."""

    create: bool = False
    interval: Duration = "30s"
    labels: Labels = {}


class Optional(_Values, frozen=True):
    """An object that is made on demand."""

    create: bool = False
    labels: Labels = {}


class Metrics(_Values, frozen=True):
    """What Prometheus reads."""

    node: bool = False
    peers: Peers = field(name="from", default_factory=list)
    pod_monitor: PodMonitor = PodMonitor()
    rules: Optional = Optional()
    dashboard: Optional = Optional()


class Tracing(_Values, frozen=True):
    """Where spans go."""

    endpoint: Annotated[str, Meta(pattern="^(https?://.+)?$")] = ""


class Values(_Values, frozen=True):
    """All of them."""

    # Helm's own: what a chart around this one says to all of its parts.
    shared: dict[str, Any] = field(name="global", default_factory=dict)
    image: Image = Image()
    driver: DriverName = DRIVER
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    inventory: Inventory = Inventory()
    device_class: DeviceClass = DeviceClass()
    pod_webhook: PodWebhook = PodWebhook()
    certificates: Certificates = Certificates()
    controller: Controller = Controller()
    node: Node = Node()
    network_policy: NetworkPolicy = NetworkPolicy()
    ui: Ui = Ui()
    metrics: Metrics = Metrics()
    tracing: Tracing = Tracing()
