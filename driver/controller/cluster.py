"""What the controller knows of the cluster: one place, fed by watches, read by every decision."""

from driver.allocator.inventory import Inventory
from driver.controller.ledger import Ledger
from driver.controller.policies import Defaults, Policies, resolve
from driver.model.allocation import Features
from driver.model.api import ObjectMeta
from driver.model.core import Node, Pod
from driver.model.deviceclass import DeviceClass
from driver.model.ids import ClaimUid, ObjectKey
from driver.model.resourceclaim import ResourceClaim


class Cluster:
    """The state of the cluster as far as the watches have told it.

    The members are plain mappings that the watches fill in; only the ledger and the inventory have
    rules of their own.
    """

    def __init__(self, *, driver: str, features: Features, defaults: Defaults) -> None:
        self.driver = driver
        self.features = features
        self.defaults = defaults
        self.ledger = Ledger()
        self.inventory = Inventory(features)
        self.classes: dict[str, DeviceClass] = {}
        self.nodes: dict[str, Node] = {}
        self.namespaces: dict[str, ObjectMeta] = {}
        self.claims: dict[ObjectKey, ResourceClaim] = {}
        # Pods of ours by UID: those that carry `names.POD_LABEL`.
        self.pods: dict[str, Pod] = {}
        # When a claim was refused last, and why.
        self.refusals: dict[ClaimUid, tuple[float, str]] = {}

    def node(self, name: str) -> Node:
        """The node; one that is not seen yet has a name and nothing else."""
        return self.nodes.get(name) or Node(metadata=ObjectMeta(name=name))

    def pod_of(self, claim: ResourceClaim) -> Pod | None:
        """The pod that a claim is for: its owner, else the first pod that it is reserved for."""
        for owner in claim.metadata.owner_references:
            if owner.kind == "Pod" and owner.uid in self.pods:
                return self.pods[owner.uid]
        for consumer in claim.status.reserved_for:
            if consumer.resource == "pods" and consumer.uid in self.pods:
                return self.pods[consumer.uid]
        return None

    def policies(self, claim: ResourceClaim) -> Policies:
        """Which policies hold for this claim; raises `UnknownPolicyError`."""
        return resolve(
            claim,
            self.pod_of(claim),
            self.classes,
            self.namespaces.get(claim.metadata.namespace),
            defaults=self.defaults,
            driver=self.driver,
        )
