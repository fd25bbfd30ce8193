"""What the pods are that a cluster without kubelets schedules: one whole card each."""

from hack.benchmarks.workloads import CLASS, Json

TEMPLATE = "one"
NAMESPACE = "default"


def template() -> Json:
    """Each pod gets a claim of its own made from this: one card, all of it."""
    exactly = {"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": TEMPLATE, "namespace": NAMESPACE},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}},
    }


def pod(name: str) -> Json:
    """One pod; nodes that no kubelet reports for are good enough for it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "containers": [
                {"name": "main", "image": "none", "resources": {"claims": [{"name": "gpu"}]}}
            ],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": TEMPLATE}],
            "tolerations": [{"operator": "Exists"}],
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
        },
    }
