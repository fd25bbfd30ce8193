"""What users of the test cluster write: pods, claims, templates."""

from typing import Any

Object = dict[str, Any]

IMAGE = "quadrant.dev/busybox:test"
CLASS = "gpu.quadrant.dev"
# The last line of what a container tells of its environment.
END = "END=of the environment"
# Tells what it sees, and ends as soon as it is told to.
SCRIPT = f"env; echo {END}; trap 'exit 0' TERM; while :; do sleep 3600 & wait; done"


def container(name: str = "main", **resources: Any) -> Object:
    """A container that prints its environment and stays."""
    return {
        "name": name,
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", SCRIPT],
        "resources": resources,
    }


def pod(
    name: str,
    *containers: Object,
    claims: dict[str, Object] | None = None,
    node: str = "",
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> Object:
    """A pod; `claims` is what its claims are made from, and `main` uses all of them."""
    references = [{"name": one, **source} for one, source in (claims or {}).items()]
    uses = [{"name": one} for one in claims or {}]
    body: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations or {}, "labels": {"test": name}},
        "spec": {
            "terminationGracePeriodSeconds": 2,
            "containers": list(containers) or [container(claims=uses)],
            **({"resourceClaims": references} if references else {}),
            **({"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}),
            **spec,
        },
    }
    return body


def made_from(template: str) -> Object:
    """A claim of the pod's own."""
    return {"resourceClaimTemplateName": template}


def existing(claim: str) -> Object:
    """A claim that others may use as well."""
    return {"resourceClaimName": claim}


def request(name: str = "gpu", *, index: int | None = None, **exactly: Any) -> Object:
    """A request for one whole card, or what `exactly` says of it; `index` names one card."""
    if index is not None:
        expression = f'device.attributes["{CLASS}"].index == {index}'
        exactly["selectors"] = [{"cel": {"expression": expression}}]
    return {"name": name, "exactly": {"deviceClassName": CLASS, **exactly}}


def share(memory: str = "7500Mi", cores: str = "0") -> Object:
    """What a request says that wants part of a card."""
    return {"capacity": {"requests": {"memory": memory, "cores": cores}}}


def claim(name: str, *requests: Object, annotations: dict[str, str] | None = None) -> Object:
    """A claim of its own."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"devices": {"requests": list(requests)}},
    }


def template(name: str, *requests: Object, annotations: dict[str, str] | None = None) -> Object:
    """A template for claims."""
    made = claim(name, *requests, annotations=annotations)
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"metadata": {"annotations": annotations or {}}, "spec": made["spec"]},
    }
