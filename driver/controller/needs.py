"""Which claims a pod comes with: allocated ones, those to allocate, and those still to be made.

Reads the cluster's state; decides nothing.
"""

from functools import partial

import msgspec

from driver.controller import extended
from driver.controller.cluster import Cluster
from driver.controller.special import resources_by_devices, special_claim
from driver.model.core import Pod, PodResourceClaim
from driver.model.ids import ObjectKey
from driver.model.resourceclaim import ResourceClaim


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of one pod.

    `allocated` ones restrict the node. `waiting` are to be allocated together, the special claim
    for extended resources last; that one has no UID until the scheduler makes it. `missing` says
    in words which claims do not exist yet: the pod cannot be placed before. `by_devices` are the
    extended resources for which the scheduler makes the special claim.
    """

    allocated: tuple[ResourceClaim, ...] = ()
    waiting: tuple[ResourceClaim, ...] = ()
    missing: tuple[str, ...] = ()
    by_devices: frozenset[str] = frozenset()


def needs(pod: Pod, cluster: Cluster) -> Needs:
    """What the pod needs, as far as the watches have told."""
    found: list[ResourceClaim] = []
    missing: list[str] = []
    for entry in pod.spec.resource_claims:
        name = _claim_name(pod, entry)
        claim = cluster.claims.get(ObjectKey(pod.metadata.namespace, name)) if name else None
        if claim is not None and _usable(claim, pod, entry):
            found.append(claim)
        elif name != "":
            missing.append(_missing(entry, name))
    class_of = partial(_class_of, cluster)
    by_devices = resources_by_devices(pod, class_of) if cluster.extended_resources else frozenset()
    special = _existing_special(pod, cluster)
    if special is None and by_devices:
        special = special_claim(pod, class_of)
    found += [special] if special is not None else []
    return Needs(
        allocated=tuple(claim for claim in found if claim.status.allocation is not None),
        waiting=tuple(claim for claim in found if claim.status.allocation is None),
        missing=tuple(missing),
        by_devices=by_devices,
    )


def _claim_name(pod: Pod, entry: PodResourceClaim) -> str | None:
    """The claim's name; None while it is not known, empty where the pod needs none."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name
    for status in pod.status.resource_claim_statuses:
        if status.name == entry.name:
            return status.resource_claim_name or ""
    return None


def _usable(claim: ResourceClaim, pod: Pod, entry: PodResourceClaim) -> bool:
    """Whether the pod may use this claim: one made from a template belongs to its pod."""
    if claim.metadata.deletion_timestamp is not None:
        return False
    owner = claim.metadata.controller()
    made_for_it = owner is not None and owner.uid == pod.metadata.uid
    return entry.resource_claim_template_name is None or made_for_it


def _missing(entry: PodResourceClaim, name: str | None) -> str:
    if name is None:
        return (
            f"the claim that template {entry.resource_claim_template_name} leads to "
            f"(resourceClaims entry {entry.name})"
        )
    return f"claim {name}"


def _class_of(cluster: Cluster, resource: str) -> str | None:
    """The class that serves a resource, if it exists."""
    name = extended.class_of(resource, extended.classes_by_resource(cluster.classes.values()))
    return name if name in cluster.classes else None


def _existing_special(pod: Pod, cluster: Cluster) -> ResourceClaim | None:
    """The special claim that the scheduler has made for the pod."""
    key = cluster.special_claims.get(pod.metadata.uid)
    return cluster.claims.get(key) if key is not None else None
