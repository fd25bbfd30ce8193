"""Which pods a workload makes: the part of the workload controllers that placement depends on.

Works on raw objects, so that fields which this project does not know reach the pods. It expects
what the API server would have let through; the reader of manifests has checked it.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from driver.simulator import identity

Raw = Mapping[str, Any]
# How long the hash of a Deployment's pod template is in the names of its pods.
_TEMPLATE_HASH = 10


def pods(workload: Raw) -> Iterator[dict[str, Any]]:
    """The pods of a raw workload or pod, in the order in which they are created.

    A pod has `generateName` where its controller leaves the name to the API server.
    """
    yield from _MAKERS[workload["kind"]](workload)


def kinds() -> tuple[str, ...]:
    """Every kind of object that pods are made from."""
    return tuple(_MAKERS)


def _pod(workload: Raw) -> Iterator[dict[str, Any]]:
    yield dict(workload)


def _deployment(workload: Raw) -> Iterator[dict[str, Any]]:
    template = workload["spec"]["template"]
    text = json.dumps(template, sort_keys=True, default=str)
    # Digits of a hash, mapped as Kubernetes does: the name stays free of words.
    digest = identity.suffix(hashlib.sha256(text.encode()).hexdigest(), _TEMPLATE_HASH)
    name = f"{workload['metadata']['name']}-{digest}"
    yield from _replicas(
        workload,
        owner=_owner("ReplicaSet", name, workload),
        base=name,
        labels={"pod-template-hash": digest},
    )


def _replica_set(workload: Raw) -> Iterator[dict[str, Any]]:
    name = workload["metadata"]["name"]
    yield from _replicas(workload, owner=_owner("ReplicaSet", name, workload), base=name)


def _replicas(
    workload: Raw, *, owner: Raw, base: str, labels: Mapping[str, str] | None = None
) -> Iterator[dict[str, Any]]:
    for _ in range(workload["spec"].get("replicas", 1)):
        yield _from_template(workload, owner, {"generateName": f"{base}-"}, labels or {})


def _stateful_set(workload: Raw) -> Iterator[dict[str, Any]]:
    name, spec = workload["metadata"]["name"], workload["spec"]
    start = (spec.get("ordinals") or {}).get("start", 0)
    for ordinal in range(start, start + spec.get("replicas", 1)):
        labels = {
            "apps.kubernetes.io/pod-index": str(ordinal),
            "statefulset.kubernetes.io/pod-name": f"{name}-{ordinal}",
        }
        owner = _owner("StatefulSet", name, workload)
        yield _from_template(workload, owner, {"name": f"{name}-{ordinal}"}, labels)


def _job(workload: Raw) -> Iterator[dict[str, Any]]:
    """The pods that run at the same time; those that follow once some have ended do not count."""
    name, spec = workload["metadata"]["name"], workload["spec"]
    if spec.get("suspend"):
        return
    parallel = spec.get("parallelism", 1)
    completions = spec.get("completions")
    labels = {"batch.kubernetes.io/job-name": name, "job-name": name}
    for index in range(parallel if completions is None else min(parallel, completions)):
        base, extra = f"{name}-", dict(labels)
        if spec.get("completionMode") == "Indexed":
            base = f"{name}-{index}-"
            extra["batch.kubernetes.io/job-completion-index"] = str(index)
        owner = _owner("Job", name, workload)
        yield _from_template(workload, owner, {"generateName": base}, extra)


_MAKERS: dict[str, Callable[[Raw], Iterator[dict[str, Any]]]] = {
    "Pod": _pod,
    "Deployment": _deployment,
    "ReplicaSet": _replica_set,
    "StatefulSet": _stateful_set,
    "Job": _job,
}


def _owner(kind: str, name: str, workload: Raw) -> dict[str, Any]:
    api_version = "batch/v1" if kind == "Job" else "apps/v1"
    namespace = workload["metadata"].get("namespace", "default")
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name,
        "uid": identity.uid(f"{kind}/{namespace}/{name}"),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _from_template(
    workload: Raw, owner: Raw, naming: Mapping[str, str], labels: Mapping[str, str]
) -> dict[str, Any]:
    template = workload["spec"]["template"]
    metadata = template.get("metadata") or {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **naming,
            "namespace": workload["metadata"].get("namespace", "default"),
            "labels": {**(metadata.get("labels") or {}), **labels},
            "annotations": dict(metadata.get("annotations") or {}),
            "ownerReferences": [dict(owner)],
        },
        "spec": template["spec"],
    }
