"""What the controller knows of the cluster: one place, fed by watches, read by every decision."""

from collections.abc import Container

from driver.allocator.inventory import Inventory
from driver.controller.cards import Card, cards
from driver.controller.changes import Changes
from driver.controller.demand import Demand
from driver.controller.footprint import footprint
from driver.controller.ledger import Answer, Ledger
from driver.controller.nominations import Nominations
from driver.controller.occupancy import Occupancy
from driver.controller.policies import Defaults, Policies, resolve
from driver.controller.scoring import Scoring
from driver.model import names
from driver.model.allocation import Features
from driver.model.api import ObjectMeta
from driver.model.core import Node, Pod
from driver.model.deviceclass import DeviceClass
from driver.model.ids import ClaimUid, DeviceId, ObjectKey
from driver.model.resourceclaim import ResourceClaim
from driver.model.resourceslice import ResourceSlice
from driver.policy.registry import BUILT_IN, Registry

# Older refusals are of no use to anybody, and a pod that the watch has not shown by then is gone.
TIDY_S = 60.0


class Cluster:
    """The state of the cluster as far as the watches have told it.

    The watches fill it through the methods below, which note in `changes` what concerns placement.
    `extended_resources` says whether the scheduler makes claims for extended resources (KEP-5004).
    """

    def __init__(
        self,
        *,
        driver: str,
        features: Features,
        defaults: Defaults,
        extended_resources: bool = True,
        registry: Registry = BUILT_IN,
    ) -> None:
        self.driver = driver
        self.features = features
        self.defaults = defaults
        self.extended_resources = extended_resources
        self.registry = registry
        self.demand = Demand(driver)
        self.scoring = Scoring(registry, self.demand)
        # Nodes on which anything changed, and those on which more than expectations did.
        self.changes = Changes()
        self.facts = Changes()
        # Nodes whose pools are other than when they were last worked out (`warming`).
        self.cold: set[str] = set()
        self.ledger = Ledger(self._device_changed)
        self.inventory = Inventory(features, self._fact)
        self.nominations = Nominations(self._expectation_changed)
        self.occupancy = Occupancy(self.changes.touch)
        self.classes: dict[str, DeviceClass] = {}
        self.nodes: dict[str, Node] = {}
        self.namespaces: dict[str, ObjectMeta] = {}
        self.claims: dict[ObjectKey, ResourceClaim] = {}
        # The special claims of pods with extended resources, by the pod's UID.
        self.special_claims: dict[str, ObjectKey] = {}
        # Pods of ours by UID: those that carry `names.POD_LABEL`.
        self.pods: dict[str, Pod] = {}
        # Of these, those that have no node yet.
        self.waiting: dict[str, Pod] = {}
        # Since when those are known that the watch has not shown yet.
        self._met: dict[str, float] = {}
        # The kinds of cards in each slice of ours.
        self._cards: dict[str, frozenset[Card]] = {}
        # When a claim was refused last, and why.
        self.refusals: dict[ClaimUid, tuple[float, str]] = {}

    # What the watches tell; every method may be told the same again

    def put_node(self, node: Node) -> None:
        """A node as it is now. What a kubelet merely confirms is no change."""
        name = node.metadata.name
        known = self.nodes.get(name)
        self.nodes[name] = node
        if known is None or _for_placement(known) != _for_placement(node):
            self._fact(name)

    def remove_node(self, name: str) -> None:
        """A node is gone."""
        if self.nodes.pop(name, None) is not None:
            self._fact(name)

    def put_class(self, device_class: DeviceClass) -> None:
        """A class as it is now."""
        known = self.classes.get(device_class.metadata.name)
        self.classes[device_class.metadata.name] = device_class
        if known is None or known.spec != device_class.spec:
            self._fact(None)
            self.cold.update(self.inventory.nodes())

    def remove_class(self, name: str) -> None:
        """A class is gone."""
        if self.classes.pop(name, None) is not None:
            self._fact(None)

    def put_slice(self, published: ResourceSlice) -> None:
        """A slice as it is now."""
        self.inventory.put_slice(published)
        if published.spec.node_name:
            self.cold.add(published.spec.node_name)
        self._cards[published.metadata.name] = cards([published], self.driver)

    def remove_slice(self, name: str) -> None:
        """A slice is gone."""
        self.inventory.remove_slice(name)
        self._cards.pop(name, None)

    def put_pod(self, pod: Pod) -> None:
        """A pod as it is now. Bound or finished, it is expected nowhere any more."""
        uid = pod.metadata.uid
        self._met.pop(uid, None)
        self.pods[uid] = pod
        if pod.spec.node_name or pod.finished:
            self.waiting.pop(uid, None)
        else:
            self.waiting[uid] = pod
        if pod.finished:
            self._leave(uid)
        elif pod.spec.node_name:
            self.nominations.drop(uid)
            self.occupancy.put(uid, pod.spec.node_name, footprint(pod))

    def meet_pod(self, pod: Pod, now: float) -> None:
        """A pod that the watch will show soon, as the reply to a write has it.

        What the watch has shown is at least as new. One that it does not show was deleted before
        we were told, and is forgotten in `tidy`.
        """
        uid = pod.metadata.uid
        if uid not in self.pods:
            self.put_pod(pod)
            self._met[uid] = now

    def remove_pod(self, uid: str) -> None:
        """A pod is gone."""
        self._met.pop(uid, None)
        self.pods.pop(uid, None)
        self.waiting.pop(uid, None)
        self._leave(uid)

    def put_claim(self, claim: ResourceClaim, now: float) -> Answer | None:
        """A claim as it is now, at `now` of a monotonic clock in seconds.

        Returns the answer of ours that has landed with it, the first time that this is seen.
        """
        key = ObjectKey(claim.metadata.namespace, claim.metadata.name)
        self.claims[key] = claim
        if claim.metadata.annotations.get(names.EXTENDED_CLAIM) == "true":
            for owner in claim.metadata.owner_references:
                self.special_claims[owner.uid] = key
        landed = self.ledger.observe(claim, now)
        self.demand.observe(claim)
        if claim.status.allocation is not None:
            self.nominations.settle(claim)
        return landed

    def remove_claim(self, key: ObjectKey, uid: ClaimUid, version: int, now: float) -> None:
        """A claim was deleted at this version. A successor of the same name stays."""
        known = self.claims.get(key)
        if known is not None and known.metadata.uid == uid:
            del self.claims[key]
            for owner in known.metadata.owner_references:
                if self.special_claims.get(owner.uid) == key:
                    del self.special_claims[owner.uid]
        self.ledger.forget(uid, version, now)
        self.demand.forget(uid)

    # What follows

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

    def cards(self) -> frozenset[Card]:
        """The kinds of cards that are published now."""
        return frozenset().union(*set(self._cards.values()))

    def has_plugin_for(self, resource: str) -> bool:
        """Whether a device plugin has something to give under this name on some node.

        What the scheduler makes claims from (KEP-5004) is in no node's `allocatable`.
        """
        return any(
            (amount := node.status.allocatable.get(resource)) is not None and amount.nano > 0
            for node in self.nodes.values()
        )

    def tidy(self, existing: Container[ClaimUid], now: float) -> None:
        """Forget what only matters for seconds, of claims and pods that may be gone."""
        self.ledger.tidy(existing, now)
        for uid in [uid for uid, at in self._met.items() if now - at >= TIDY_S]:
            self.remove_pod(uid)
        self.refusals = {
            uid: refusal for uid, refusal in self.refusals.items() if now - refusal[0] < TIDY_S
        }

    def policies(self, claim: ResourceClaim, pod: Pod | None = None) -> Policies:
        """Which policies hold for this claim, used by `pod` or else by the pod it is for.

        Raises `UnknownPolicyError`.
        """
        return resolve(
            claim,
            pod or self.pod_of(claim),
            self.classes,
            self.namespaces.get(claim.metadata.namespace),
            defaults=self.defaults,
            driver=self.driver,
            registry=self.registry,
        )

    def _leave(self, uid: str) -> None:
        node = self.occupancy.node_of(uid)
        self.nominations.drop(uid)
        self.occupancy.drop(uid)
        if node is not None:
            # What was expected there, others can have.
            self.facts.touch(node)

    def _device_changed(self, device: DeviceId) -> None:
        published = self.inventory.find(device)
        if published is not None:
            # A device that is not published changes nothing until it is, and then we are told.
            self._fact(published.slice.spec.node_name)

    def _expectation_changed(self, device: DeviceId) -> None:
        published = self.inventory.find(device)
        if published is not None:
            _touch(self.changes, published.slice.spec.node_name)

    def _fact(self, node: str | None) -> None:
        _touch(self.changes, node)
        _touch(self.facts, node)


def _touch(changes: Changes, node: str | None) -> None:
    """A change on this node; without one, on any."""
    if node:
        changes.touch(node)
    else:
        changes.touch_all()


def _for_placement(node: Node) -> tuple[object, ...]:
    """The parts of a node that placement rests on."""
    return node.metadata.labels, node.spec, node.status
