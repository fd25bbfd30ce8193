"""One cluster that does not exist: an API server, and the controller's view of it.

Every stored object reaches the controller's state at once and through the same methods as from a
real watch. Time stands still: nothing is ever old enough to expire, or new enough to wait for.
"""

import itertools
from typing import Any

import msgspec

from driver.cli.simulation.apiserver import ApiServer, Raw
from driver.cli.simulation.documents import Document
from driver.cli.simulation.inventory import Machines
from driver.cli.simulation.manifests import Manifests, typed
from driver.controller.cards import cards
from driver.controller.cluster import Cluster
from driver.controller.footprint import footprint
from driver.controller.occupancy import Occupancy
from driver.controller.planner import Planner
from driver.controller.policies import Defaults
from driver.model import names
from driver.model.api import ObjectMeta
from driver.model.core import Pod
from driver.model.deviceclass import DeviceClass, DeviceTaintRule
from driver.model.resourceclaim import ResourceClaim
from driver.policy.registry import BUILT_IN, Registry
from driver.simulator import identity
from driver.simulator.defaults import defaulted
from driver.simulator.releases import Release
from driver.wire import decode

NOW = 0.0


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What a simulation is told besides its objects."""

    release: Release
    defaults: Defaults
    driver: str = names.DRIVER
    registry: Registry = BUILT_IN


class World:
    """The state of a simulation. `nodes` are in the order in which the scheduler tries them."""

    def __init__(self, manifests: Manifests, machines: Machines, rules: Rules) -> None:
        self.rules = rules
        self.cards = cards(machines.slices, rules.driver)
        self.nodes = tuple(node.metadata.name for node in machines.nodes)
        self.api = ApiServer(self._watch)
        self.cluster = Cluster(
            driver=rules.driver,
            features=rules.release.features,
            defaults=rules.defaults,
            extended_resources=rules.release.extended_resources,
            registry=rules.registry,
        )
        self.planner = Planner(self.cluster)
        # What all pods take of their nodes, those included that the controller does not see.
        self.bound = Occupancy(lambda _: None)
        self._shares = itertools.count()
        self._load(manifests, machines)

    def _load(self, manifests: Manifests, machines: Machines) -> None:
        """What is there before the first pod."""
        for node in machines.nodes:
            self.cluster.put_node(node)
        for published in machines.slices:
            self.cluster.inventory.put_slice(published)
        for document in manifests.classes:
            self.cluster.put_class(typed(document, DeviceClass))
        for document in manifests.taint_rules:
            self.cluster.inventory.put_taint_rule(typed(document, DeviceTaintRule))
        for document in manifests.namespaces:
            metadata = decode.convert(ObjectMeta, document.raw["metadata"])
            self.cluster.namespaces[metadata.name] = metadata
        for document in (*manifests.templates, *manifests.claims):
            made = defaulted(document.raw)
            (self.api.restore if document.exists else self.api.create)(made)
        for document in manifests.workloads:
            if document.exists and document.kind == "Pod":
                self._load_pod(document)

    def _load_pod(self, document: Document) -> None:
        """A pod of the snapshot; one that has ended holds nothing any more."""
        if not typed(document, Pod).finished:
            self.api.restore(defaulted(document.raw))

    def share_id(self) -> str:
        """A UUID that no share has yet."""
        return identity.uid(f"share/{next(self._shares)}")

    def namespace(self, name: str) -> ObjectMeta:
        """The namespace; one that no manifest describes has a name and nothing else."""
        return self.cluster.namespaces.get(name, ObjectMeta(name=name))

    def pod(self, raw: Raw) -> Raw:
        """The pod as it is stored now."""
        metadata = raw["metadata"]
        stored = self.api.get("Pod", metadata["namespace"], metadata["name"])
        if stored is None:
            raise LookupError(f"pod {metadata['namespace']}/{metadata['name']} is not stored")
        return stored

    def _watch(self, raw: dict[str, Any]) -> None:
        if raw["kind"] == "ResourceClaim":
            self.cluster.put_claim(decode.convert(ResourceClaim, raw), NOW)
        elif raw["kind"] == "Pod":
            pod = decode.convert(Pod, raw)
            if pod.spec.node_name:
                self.bound.put(pod.metadata.uid, pod.spec.node_name, footprint(pod))
            if names.POD_LABEL in pod.metadata.labels:
                # The controller's watch shows it only pods of ours.
                self.cluster.put_pod(pod)
