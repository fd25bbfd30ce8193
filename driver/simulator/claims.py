"""Which claims are made for a pod: from its templates, and for its extended resources.

The first is the work of kube-controller-manager, the second of kube-scheduler (KEP-5004). Works on
raw objects, as `driver.simulator.workloads` does.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from driver.model import names

Raw = Mapping[str, Any]
# What a generated name may have before its suffix, and the hyphens around the pod's own name for
# the claim. Source: `pkg/controller/resourceclaim`, 1.37.
_MAX_BASE = 57
_SPECIAL = "container-{container}-request-{request}"


def from_templates(
    pod: Raw, template_of: Callable[[str], Raw | None]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each claim that a template leads to, with the pod's own name for it.

    `template_of` finds a template of the pod's namespace by name. A template that does not exist
    makes no claim: the pod waits for it.
    """
    for entry in pod["spec"].get("resourceClaims") or ():
        template = template_of(entry.get("resourceClaimTemplateName") or "")
        if template is not None:
            yield entry["name"], _claim(pod, entry["name"], template)


def _claim(pod: Raw, name: str, template: Raw) -> dict[str, Any]:
    made = template["spec"]
    metadata = made.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), names.POD_CLAIM_NAME: name}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": _base(pod["metadata"]["name"], name),
            "namespace": pod["metadata"]["namespace"],
            "labels": dict(metadata.get("labels") or {}),
            "annotations": annotations,
            "ownerReferences": [_owned_by(pod)],
        },
        "spec": made["spec"],
    }


def _base(pod: str, claim: str) -> str:
    """`<pod>-<claim>-`; when that is too long, both parts give way in proportion."""
    base = f"{pod}-{claim}-"
    if len(base) <= _MAX_BASE:
        return base
    room = _MAX_BASE - len("--")
    for_pod = room * len(pod) // (len(pod) + len(claim))
    return f"{pod[:for_pod]}-{claim[: room - for_pod]}-"


def _owned_by(pod: Raw) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod["metadata"]["name"],
        "uid": pod["metadata"]["uid"],
        "controller": True,
    }


def special(
    pod: Raw, class_of: Callable[[str], str | None]
) -> tuple[dict[str, Any], list[dict[str, str]]] | None:
    """The claim for a pod's extended resources, and which request serves which of them.

    `class_of` names the DeviceClass that serves a resource, or says that none does. None when the
    pod asks for no such resource. Every container has requests of its own: the scheduler of 1.37
    lets an init container use those of a later one, which this does not.
    """
    requests: list[dict[str, Any]] = []
    mappings: list[dict[str, str]] = []
    for request, container, resource, device_class, count in _extended(pod, class_of):
        exactly = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count}
        requests.append({"name": request, "exactly": exactly})
        mappings.append(
            {"containerName": container, "resourceName": resource, "requestName": request}
        )
    if not requests:
        return None
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": f"{pod['metadata']['name']}-extended-resources-",
            "namespace": pod["metadata"]["namespace"],
            "annotations": {names.EXTENDED_CLAIM: "true"},
            "ownerReferences": [_owned_by(pod)],
        },
        "spec": {"devices": {"requests": requests}},
    }
    return claim, mappings


def _extended(
    pod: Raw, class_of: Callable[[str], str | None]
) -> Iterator[tuple[str, str, str, str, int]]:
    """Request name, container, resource, class and count of all extended resources with a class."""
    containers = [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]
    for number, container in enumerate(containers):
        asked = container.get("resources") or {}
        # The API server copies a limit to a request that is not there.
        amounts = {**(asked.get("limits") or {}), **(asked.get("requests") or {})}
        for index, resource in enumerate(sorted(amounts)):
            device_class = class_of(resource)
            count = int(amounts[resource]) if device_class is not None else 0
            if device_class is not None and count:
                name = _SPECIAL.format(container=number, request=index)
                yield name, container["name"], resource, device_class, count
