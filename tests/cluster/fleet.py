"""A cluster without kubelets: nodes, their devices, and pods that are only ever scheduled."""

from typing import Any

DRIVER = "gpu.quadrant.dev"
Json = dict[str, Any]
CARDS = 8
SHARED_CARDS = 2
SHARED_MEMORY = 15360
SHARE = 7500
PLACES_A_CARD = SHARED_MEMORY // SHARE
_TEMPLATES = "resource.k8s.io/v1"


def node(name: str) -> Json:
    """A node that never reports; pods of the tests tolerate that."""
    amounts = {"cpu": "256", "memory": "2048Gi", "pods": "1000"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def whole_slice(name: str) -> Json:
    """Eight cards in two NVLink groups, each given away whole."""
    return _slice(name, [_card(index, "gpu") for index in range(CARDS)])


def shared_slice(name: str) -> Json:
    """Two cards that hold two shares each."""
    return _slice(name, [_shared_card(index) for index in range(SHARED_CARDS)])


def _slice(name: str, devices: list[Json]) -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"0-{DRIVER}-{name}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def _card(index: int, kind: str) -> Json:
    attributes = {
        "type": {"string": kind},
        "index": {"int": index},
        "nvlinkGroup": {"string": str(index // 4)},
    }
    return {"name": f"gpu-{index}", "attributes": attributes}


def _shared_card(index: int) -> Json:
    policy = {
        "default": f"{SHARED_MEMORY}Mi",
        "validRange": {"min": "1Mi", "step": "1Mi", "max": f"{SHARED_MEMORY}Mi"},
    }
    memory = {"value": f"{SHARED_MEMORY}Mi", "requestPolicy": policy}
    return _card(index, "shared") | {
        "allowMultipleAllocations": True,
        "capacity": {"memory": memory},
    }


def classes() -> list[Json]:
    """One class for whole cards, which answers for nvidia.com/gpu, and one for shares."""
    return [
        _class("whole.test", "gpu", {"extendedResourceName": "nvidia.com/gpu"}),
        _class("shared.test", "shared", {}),
    ]


def _class(name: str, kind: str, more: Json) -> Json:
    expression = f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].type == "{kind}"'
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}], **more},
    }


def templates() -> list[Json]:
    """What pods are made from: one card, two cards of one group, a share."""
    pair = {"constraints": [{"matchAttribute": f"{DRIVER}/nvlinkGroup"}]}
    return [
        _template("one", {"deviceClassName": "whole.test", "count": 1}, {}),
        _template("pair", {"deviceClassName": "whole.test", "count": 2}, pair),
        _template(
            "share",
            {
                "deviceClassName": "shared.test",
                "count": 1,
                "capacity": {"requests": {"memory": f"{SHARE}Mi"}},
            },
            {},
        ),
    ]


def _template(name: str, exactly: Json, more: Json) -> Json:
    request = {"name": "gpu", "exactly": {"allocationMode": "ExactCount", **exactly}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [request], **more}}},
    }


def pod(name: str, kind: str) -> Json:
    """A pod of one of the kinds: `native`, or the name of a template."""
    container: Json = {"name": "main", "image": "none"}
    spec: Json = {
        "containers": [container],
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
    }
    if kind == "native":
        container["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    else:
        container["resources"] = {"claims": [{"name": "gpu"}]}
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": kind}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"kind": kind}},
        "spec": spec,
    }
