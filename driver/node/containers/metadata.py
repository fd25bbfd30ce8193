"""Which devices a container has, as files that programs in it can read (KEP-5304).

Pure. One file for each request: the same object in all versions of its format, newest first, from
which a reader takes the first that it knows. Attributes are named as in the ResourceSlice. Source
of format and paths: `k8s.io/dynamic-resource-allocation/api/metadata`.
"""

from typing import Any

import msgspec

from driver.model.names import INDEX, PCI_BUS_ID, PRODUCT_NAME, UUID
from driver.model.resourceslice import DeviceAttribute
from driver.node.held import HeldDevice, PreparedClaim
from driver.wire.encode import builtins

_VERSIONS = ("metadata.resource.k8s.io/v1beta1", "metadata.resource.k8s.io/v1alpha1")
_FOLDER = "/var/run/kubernetes.io/dra-device-attributes"


def documents(driver: str, claim: PreparedClaim) -> dict[str, bytes]:
    """The file of each request, by its name; the same claim always gives the same bytes."""
    by_request: dict[str, list[HeldDevice]] = {}
    for device in claim.devices:
        by_request.setdefault(device.request, []).append(device)
    return {name: _document(driver, claim, found) for name, found in by_request.items()}


def host_path(claim: PreparedClaim, request: str) -> str:
    """Where a request's file lies on the host."""
    return f"{claim.metadata.folder}/{request}.json" if claim.metadata else ""


def mounts(driver: str, claim: PreparedClaim, request: str) -> list[dict[str, Any]]:
    """How the file gets into a container that uses the request; [] for a claim without."""
    if claim.metadata is None:
        return []
    pod_claim = claim.metadata.pod_claim
    source = f"resourceclaimtemplates/{pod_claim}" if pod_claim else f"resourceclaims/{claim.name}"
    return [
        {
            "hostPath": host_path(claim, request),
            "containerPath": f"{_FOLDER}/{source}/{request}/{driver}-metadata.json",
            "options": ["ro", "bind"],
        }
    ]


def _document(driver: str, claim: PreparedClaim, devices: list[HeldDevice]) -> bytes:
    pod_claim = claim.metadata.pod_claim if claim.metadata else ""
    # Subrequests: which one it became is the same for all devices of a request.
    subrequest = devices[0].subrequest
    name = f"{devices[0].request}/{subrequest}" if subrequest else devices[0].request
    content = {
        "metadata": {
            "name": claim.name,
            "namespace": claim.namespace,
            "uid": claim.uid,
            "generation": 1,
        },
        **({"podClaimName": pod_claim} if pod_claim else {}),
        "requests": [{"name": name, "devices": [_device(driver, device) for device in devices]}],
    }
    objects = (
        {"kind": "DeviceMetadata", "apiVersion": version, **content} for version in _VERSIONS
    )
    return b"".join(msgspec.json.encode(item) + b"\n" for item in objects)


def _device(driver: str, device: HeldDevice) -> dict[str, Any]:
    part = device.partition
    texts = {
        "type": "mig" if part else "gpu",
        UUID: device.uuid,
        PRODUCT_NAME: device.model,
        PCI_BUS_ID: device.pci_bus_id,
        "parentUUID": part.parent if part else None,
        "profile": part.profile if part else None,
    }
    attributes = {name: DeviceAttribute(string=text) for name, text in texts.items() if text}
    attributes[INDEX] = DeviceAttribute(int_=device.index)
    return {
        "driver": driver,
        "pool": device.pool,
        "name": device.device,
        "attributes": builtins(attributes),
    }
