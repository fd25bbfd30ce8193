"""The controller's view of a listed cluster, made from the listing and by the same methods.

What a running controller remembers besides, is made up for: pods that wait for the scheduler with a
nomination are expected to get devices there.
"""

from collections.abc import Collection

import msgspec
from msgspec.structs import replace

from driver.cli.live.listing import Listing
from driver.controller.cluster import Cluster
from driver.controller.commit import unallocated
from driver.controller.planner import Planner
from driver.controller.podqueue import turn
from driver.controller.policies import Defaults
from driver.model import names
from driver.model.core import Pod
from driver.model.errors import QuadrantError
from driver.policy.registry import BUILT_IN, Registry

_NOW = 0.0


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What a controller is told, and a cluster does not show."""

    driver: str = names.DRIVER
    defaults: Defaults
    registry: Registry = BUILT_IN


def view(
    listing: Listing, rules: Rules, *, undone_pod: str = "", undone_claims: Collection[str] = ()
) -> Cluster:
    """The cluster's state.

    The undone ones, by UID, are there as if nothing had been decided for them yet.
    """
    cluster = Cluster(
        driver=rules.driver,
        features=listing.served.features,
        defaults=rules.defaults,
        extended_resources=listing.served.extended_resources,
        registry=rules.registry,
    )
    for node in listing.nodes:
        cluster.put_node(node)
    for namespace in listing.namespaces:
        cluster.namespaces[namespace.metadata.name] = namespace.metadata
    for device_class in listing.classes:
        cluster.put_class(device_class)
    for published in listing.slices:
        cluster.put_slice(published)
    for rule in listing.taint_rules:
        cluster.inventory.put_taint_rule(rule)
    for claim in listing.claims:
        undone = claim.metadata.uid in undone_claims
        cluster.put_claim(unallocated(claim) if undone else claim, _NOW)
    for pod in listing.pods:
        cluster.put_pod(unplaced(pod) if pod.metadata.uid == undone_pod else pod)
    return cluster


def expect_nominated(cluster: Cluster, *, but: str = "") -> None:
    """Enter what pods will take that wait with a nomination, but for one (its UID)."""
    planner = Planner(cluster)
    for pod in sorted(cluster.pods.values(), key=turn):
        node = pod.status.nominated_node_name
        waits = node and not pod.spec.node_name and not pod.finished
        if not waits or pod.metadata.uid == but:
            continue
        try:
            plan = planner.stays(pod, node)
        except QuadrantError:
            # A policy that nobody knows any more: the scheduler decides about that pod.
            continue
        if plan is not None:
            planner.nominate(pod, plan)


def unplaced(pod: Pod) -> Pod:
    """The pod as it is before it has a node; what its templates led to stays."""
    status = replace(pod.status, nominated_node_name="", phase="")
    return replace(pod, spec=replace(pod.spec, node_name=""), status=status)
