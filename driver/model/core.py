"""The parts of pods and nodes that placement reads.

Source of every field: `k8s.io/api/core/v1`.
"""

from driver.model.api import ApiStruct, NodeSelector, ObjectMeta, Toleration
from driver.model.quantity import Quantity


class Taint(ApiStruct, frozen=True, kw_only=True):
    """A taint of a node."""

    key: str
    value: str = ""
    effect: str = ""


class NodeSpec(ApiStruct, frozen=True, kw_only=True):
    """What an administrator says of a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(ApiStruct, frozen=True, kw_only=True):
    """What a node has to give, and which optional features its kubelet says it has."""

    allocatable: dict[str, Quantity] = {}
    declared_features: tuple[str, ...] = ()


class Namespace(ApiStruct, frozen=True, kw_only=True):
    """One namespace; all that counts here are its annotations."""

    metadata: ObjectMeta


class Node(ApiStruct, frozen=True, kw_only=True):
    """One node."""

    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ContainerResourceClaim(ApiStruct, frozen=True, kw_only=True):
    """A container's use of one of its pod's claims."""

    name: str
    request: str = ""


class ResourceRequirements(ApiStruct, frozen=True, kw_only=True):
    """What a container asks for."""

    limits: dict[str, Quantity] = {}
    requests: dict[str, Quantity] = {}
    claims: tuple[ContainerResourceClaim, ...] = ()


class SecurityContext(ApiStruct, frozen=True, kw_only=True):
    """The one security setting that matters here."""

    privileged: bool | None = None


class ContainerPort(
    ApiStruct, frozen=True, kw_only=True, rename={"host_port": "hostPort", "host_ip": "hostIP"}
):
    """A port that a container may hold on its host."""

    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = ""


class Container(ApiStruct, frozen=True, kw_only=True):
    """One container, init containers included."""

    name: str
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    security_context: SecurityContext | None = None
    restart_policy: str | None = None


class PodResourceClaim(ApiStruct, frozen=True, kw_only=True):
    """A pod's name for a claim, or for a template that claims are made from."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class NodeAffinity(
    ApiStruct,
    frozen=True,
    kw_only=True,
    rename={"required": "requiredDuringSchedulingIgnoredDuringExecution"},
):
    """On which nodes a pod must run."""

    required: NodeSelector | None = None


class Affinity(ApiStruct, frozen=True, kw_only=True):
    """Where a pod wants to be."""

    node_affinity: NodeAffinity | None = None


class PodSchedulingGate(ApiStruct, frozen=True, kw_only=True):
    """Something a pod waits for before it is scheduled."""

    name: str


class PodSpec(ApiStruct, frozen=True, kw_only=True):
    """What a pod asks for."""

    node_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    overhead: dict[str, Quantity] = {}
    # For the pod as a whole (KEP-2837); it goes before what the containers add up to.
    resources: ResourceRequirements = ResourceRequirements()
    scheduler_name: str = ""
    priority: int = 0


class PodResourceClaimStatus(ApiStruct, frozen=True, kw_only=True):
    """Which claim was made from a pod's template."""

    name: str
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(ApiStruct, frozen=True, kw_only=True):
    """Which request of the special claim serves which extended resource (KEP-5004)."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(ApiStruct, frozen=True, kw_only=True):
    """The special claim that the scheduler made for a pod's extended resources (KEP-5004)."""

    resource_claim_name: str = ""
    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()


class PodCondition(ApiStruct, frozen=True, kw_only=True):
    """One condition of a pod."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class PodStatus(ApiStruct, frozen=True, kw_only=True):
    """Where a pod is in its life."""

    phase: str = ""
    nominated_node_name: str = ""
    conditions: tuple[PodCondition, ...] = ()
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None


class Pod(ApiStruct, frozen=True, kw_only=True):
    """One pod."""

    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def finished(self) -> bool:
        """Whether its containers have ended for good; it holds nothing of a node any more."""
        return self.status.phase in ("Succeeded", "Failed")
