"""Which pods each kind of workload makes."""

from typing import Any

import pytest

from driver.simulator import workloads


def _workload(kind: str, **spec: object) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": "a"}, "annotations": {"policy": "spread"}},
        "spec": {"containers": [{"name": "main", "unknown": 1}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "demo", "namespace": "team"},
        "spec": {"template": template, **spec},
    }


@pytest.mark.parametrize(
    ("kind", "spec", "number"),
    [
        ("Deployment", {}, 1),
        ("Deployment", {"replicas": 3}, 3),
        ("ReplicaSet", {"replicas": 0}, 0),
        ("StatefulSet", {"replicas": 2}, 2),
        ("Job", {}, 1),
        ("Job", {"parallelism": 4}, 4),
        ("Job", {"parallelism": 4, "completions": 2}, 2),
        ("Job", {"parallelism": 4, "suspend": True}, 0),
    ],
)
def test_number_of_pods(kind: str, spec: dict[str, Any], number: int) -> None:
    """A workload makes the pods that run at the same time."""
    assert len(list(workloads.pods(_workload(kind, **spec)))) == number


def test_pods_of_a_deployment_belong_to_its_replica_set() -> None:
    """Name, labels, annotations, owner and namespace are those that Kubernetes gives."""
    (pod,) = workloads.pods(_workload("Deployment"))
    metadata = pod["metadata"]
    digest = metadata["labels"]["pod-template-hash"]
    assert metadata["generateName"] == f"demo-{digest}-"
    assert metadata["labels"]["app"] == "a"
    assert metadata["annotations"] == {"policy": "spread"}
    assert metadata["namespace"] == "team"
    (owner,) = metadata["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == (
        "ReplicaSet",
        f"demo-{digest}",
        True,
    )


def test_pods_of_a_stateful_set_are_named_by_ordinal() -> None:
    """Ordinals count from `spec.ordinals.start`."""
    found = workloads.pods(_workload("StatefulSet", replicas=2, ordinals={"start": 3}))
    assert [pod["metadata"]["name"] for pod in found] == ["demo-3", "demo-4"]


def test_an_indexed_job_puts_the_index_into_the_name() -> None:
    """The index is a label as well."""
    found = list(workloads.pods(_workload("Job", parallelism=2, completionMode="Indexed")))
    assert [pod["metadata"]["generateName"] for pod in found] == ["demo-0-", "demo-1-"]
    labels = found[1]["metadata"]["labels"]
    assert labels["batch.kubernetes.io/job-completion-index"] == "1"


def test_fields_that_nobody_here_knows_reach_the_pod() -> None:
    """Pods are raw objects: nothing of the template is lost."""
    (pod,) = workloads.pods(_workload("Deployment"))
    assert pod["spec"]["containers"][0]["unknown"] == 1


def test_a_pod_is_itself() -> None:
    """A Pod manifest makes one pod: itself."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}}
    assert list(workloads.pods(pod)) == [pod]
