"""Allocations that nobody will use: a pod with two claims that got one and cannot get the other.

The special claim for its extended resources counts as one of them.

The scheduler takes its reservation back but leaves the allocation, and would hold the devices for
ever. Such a claim is de-allocated, on the version that was looked at (design, rule 11).
"""

from driver.controller.cluster import Cluster
from driver.controller.needs import needs
from driver.model.core import Pod
from driver.model.resourceclaim import ResourceClaim

UNUSED_FOR_S = 5.0


class Reaper:
    """Remembers since when an allocation has been unused."""

    def __init__(self) -> None:
        self._unused_since: dict[str, float] = {}

    def due(self, cluster: Cluster, now: float) -> list[ResourceClaim]:
        """The claims to de-allocate now: unused and their pod unbound for long enough."""
        unused = {
            claim.metadata.uid: claim
            for claim in cluster.claims.values()
            if _unused(claim, cluster)
        }
        self._unused_since = {uid: self._unused_since.get(uid, now) for uid in unused}
        return [
            claim for uid, claim in unused.items() if now - self._unused_since[uid] >= UNUSED_FOR_S
        ]


def _unused(claim: ResourceClaim, cluster: Cluster) -> bool:
    allocation = claim.status.allocation
    if allocation is None or claim.status.reserved_for or claim.metadata.deletion_timestamp:
        return False
    if all(result.driver != cluster.driver for result in allocation.devices.results):
        return False
    pod = _owner(claim, cluster)
    # A claim that no pod of ours owns may be kept by its user on purpose.
    return pod is not None and not pod.spec.node_name and _needs_more(pod, cluster)


def _needs_more(pod: Pod, cluster: Cluster) -> bool:
    """Whether one claim does not do: with one alone the pod goes on to be bound."""
    return len(pod.spec.resource_claims) > 1 or bool(needs(pod, cluster).by_devices)


def _owner(claim: ResourceClaim, cluster: Cluster) -> Pod | None:
    owner = claim.metadata.controller()
    return cluster.pods.get(owner.uid) if owner is not None else None
