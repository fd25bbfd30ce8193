"""Which claims are made for a pod from its templates: the work of kube-controller-manager.

Works on raw objects, as `driver.simulator.workloads` does.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from driver.model import names

Raw = Mapping[str, Any]
# What a generated name may have before its suffix, and the hyphens around the pod's own name for
# the claim. Source: `pkg/controller/resourceclaim`, 1.37.
_MAX_BASE = 57


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
