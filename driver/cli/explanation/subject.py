"""What is to be explained: `pod/NAME` or `claim/NAME`, and which objects of the cluster that is."""

from collections.abc import Iterable

import msgspec

from driver.cli.usage import UsageError
from driver.controller.cluster import Cluster
from driver.controller.needs import needs
from driver.model.api import ObjectMeta
from driver.model.core import Pod, PodResourceClaim, PodSpec
from driver.model.errors import QuadrantError
from driver.model.ids import ObjectKey
from driver.model.resourceclaim import ResourceClaim

_KINDS = {
    "pod": "pod",
    "pods": "pod",
    "po": "pod",
    "claim": "claim",
    "resourceclaim": "claim",
    "resourceclaims": "claim",
}


class SubjectError(QuadrantError):
    """What is to be explained cannot be found."""


class Subject(msgspec.Struct, frozen=True):
    """A pod or a claim, by name."""

    kind: str
    key: ObjectKey

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that an account is about.

    Where no pod uses a claim, `pod` is one that asks for nothing else; `real` tells. `claims` are
    the pod's, or the one claim, as they are stored.
    """

    subject: Subject
    pod: Pod
    real: bool
    claims: tuple[ResourceClaim, ...]


def parse(text: str, namespace: str) -> Subject:
    """Read `pod/NAME` or `claim/NAME`; raises `UsageError`."""
    kind, _, name = text.partition("/")
    if kind.lower() not in _KINDS or not name or "/" in name:
        raise UsageError(
            f"{text!r} cannot be explained: expected pod/NAME or claim/NAME, and the namespace "
            "with --namespace"
        )
    return Subject(_KINDS[kind.lower()], ObjectKey(namespace, name))


def pod_key(subject: Subject, claims: Iterable[ResourceClaim]) -> ObjectKey | None:
    """Which pod must be known: the subject, or the claim's owner, or its first user."""
    if subject.kind == "pod":
        return subject.key
    claim = _claim(subject, claims)
    for owner in claim.metadata.owner_references:
        if owner.kind == "Pod":
            return ObjectKey(subject.key.namespace, owner.name)
    for user in claim.status.reserved_for:
        if user.resource == "pods":
            return ObjectKey(subject.key.namespace, user.name)
    return None


def find(subject: Subject, cluster: Cluster) -> Case:
    """The objects, as the cluster has them; raises `SubjectError`."""
    if subject.kind == "pod":
        pod = _pod(subject, cluster)
        needed = needs(pod, cluster)
        return Case(
            subject=subject, pod=pod, real=True, claims=(*needed.allocated, *needed.waiting)
        )
    claim = _claim(subject, cluster.claims.values())
    user = cluster.pod_of(claim) or _waiting_user(claim, cluster)
    pod = user or _alone(claim)
    return Case(subject=subject, pod=pod, real=user is not None, claims=(claim,))


def _pod(subject: Subject, cluster: Cluster) -> Pod:
    for pod in cluster.pods.values():
        if (pod.metadata.namespace, pod.metadata.name) == subject.key:
            return pod
    raise SubjectError(f"there is no {subject}; is it in another namespace (--namespace)?")


def _claim(subject: Subject, claims: Iterable[ResourceClaim]) -> ResourceClaim:
    for claim in claims:
        if (claim.metadata.namespace, claim.metadata.name) == subject.key:
            return claim
    raise SubjectError(f"there is no {subject}; is it in another namespace (--namespace)?")


def _waiting_user(claim: ResourceClaim, cluster: Cluster) -> Pod | None:
    """A pod of ours that names the claim and has not got it yet; the first by name."""
    users = (pod for pod in cluster.pods.values() if claim in needs(pod, cluster).waiting)
    return min(users, key=lambda pod: pod.metadata.name, default=None)


def _alone(claim: ResourceClaim) -> Pod:
    metadata = claim.metadata
    entry = PodResourceClaim(name="claim", resource_claim_name=metadata.name)
    return Pod(
        metadata=ObjectMeta(name="(none)", namespace=metadata.namespace),
        spec=PodSpec(resource_claims=(entry,)),
    )
