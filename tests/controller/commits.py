"""Builders for tests of the commit hook: a cluster, claims, and the scheduler's proposals."""

import itertools
from typing import Any

import msgspec

from driver.controller.cluster import Cluster
from driver.controller.commit import Ruling, decide
from driver.controller.policies import Defaults
from driver.controller.proposal import read
from driver.model.allocation import Features
from driver.model.core import Node
from driver.model.deviceclass import DeviceClass
from driver.model.resourceclaim import ResourceClaim
from driver.model.resourceslice import ResourceSlice
from driver.wire.admission import AdmissionRequest
from driver.wire.decode import convert

DRIVER = "gpu.quadrant.dev"
CLASS = "gpu.quadrant.dev"
Json = dict[str, Any]
_shares = itertools.count(1)


def gpu(index: int, *, mebi: int = 0, **attributes: str | int) -> Json:
    """A card: whole, or shareable when it has memory to share."""
    device: Json = {
        "name": f"gpu-{index}",
        "attributes": {
            "index": {"int": index},
            "uuid": {"string": f"GPU-{index}"},
            **{
                name: {"int": value} if isinstance(value, int) else {"string": value}
                for name, value in attributes.items()
            },
        },
    }
    if mebi:
        policy = {"default": f"{mebi}Mi", "validRange": {"min": "1Mi", "step": "1Mi"}}
        device["capacity"] = {"memory": {"value": f"{mebi}Mi", "requestPolicy": policy}}
        device["allowMultipleAllocations"] = True
    return device


def cluster(gpu_policy: str = "compact", **nodes: list[Json]) -> Cluster:
    """A cluster with these devices on these nodes, a pool each."""
    features = Features(
        consumable_capacity=True,
        prioritized_list=True,
        admin_access=True,
        device_taints=True,
        partitionable_devices=True,
        device_binding_and_status=True,
    )
    made = Cluster(
        driver=DRIVER, features=features, defaults=Defaults(node="compact", gpu=gpu_policy)
    )
    expression = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    made.classes[CLASS] = convert(
        DeviceClass, {"metadata": {"name": CLASS}, "spec": {"selectors": [expression]}}
    )
    for name, devices in nodes.items():
        made.nodes[name] = convert(Node, {"metadata": {"name": name}})
        made.inventory.put_slice(slice_of(name, devices))
    return made


def slice_of(node: str, devices: list[Json], driver: str = DRIVER) -> ResourceSlice:
    """All devices of a node in one slice."""
    spec = {
        "driver": driver,
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": devices,
    }
    return convert(ResourceSlice, {"metadata": {"name": f"{driver}-{node}"}, "spec": spec})


def request(name: str = "gpu", *, count: int = 1, mebi: int = 0, **more: Any) -> Json:
    """A request for whole cards, or for a share of one."""
    exactly: Json = {"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": count}
    if mebi:
        exactly["capacity"] = {"requests": {"memory": f"{mebi}Mi"}}
    return {"name": name, "exactly": exactly | more}


def picked(
    device: str, *, node: str = "a", name: str = "gpu", driver: str = DRIVER, mebi: int = 0
) -> Json:
    """One device as the scheduler picks it."""
    result: Json = {"request": name, "driver": driver, "pool": node, "device": device}
    if mebi:
        result["shareID"] = f"share-{next(_shares)}"
        result["consumedCapacity"] = {"memory": f"{mebi}Mi"}
    return result


def claim(
    name: str,
    *requests: Json,
    version: int = 10,
    annotations: dict[str, str] | None = None,
    **devices: Any,
) -> Json:
    """A claim that is free."""
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}"}
    return {
        "metadata": metadata | {"resourceVersion": str(version), "annotations": annotations or {}},
        "spec": {"devices": {"requests": list(requests), **devices}},
    }


def proposed(free: Json, *results: Json, node: str = "a") -> Json:
    """The claim as the scheduler wants it stored."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    allocation = {
        "devices": {"results": list(results)},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
    }
    return free | {"status": {"allocation": allocation}}


def review(old: Json, new: Json) -> AdmissionRequest:
    """What the API server asks."""
    return AdmissionRequest(
        uid="review",
        operation="UPDATE",
        namespace="ns",
        name=old["metadata"]["name"],
        object=msgspec.Raw(msgspec.json.encode(new)),
        old_object=msgspec.Raw(msgspec.json.encode(old)),
    )


def commit(
    at: Cluster,
    free: Json,
    *results: Json,
    node: str = "a",
    now: float = 100.0,
    dry_run: bool = False,
) -> Ruling:
    """Ask about one commit."""
    proposal = read(review(free, proposed(free, *results, node=node)))
    assert proposal is not None
    return decide(
        proposal,
        cluster=at,
        now=now,
        share_id=lambda: f"new-{next(_shares)}",
        dry_run=dry_run,
    )


def land(at: Cluster, free: Json, ruling: Any, *, version: int, now: float = 100.0) -> None:
    """The ruling reaches etcd, and the watch shows it."""
    stored = proposed(free, *[msgspec.to_builtins(r, enc_hook=str) for r in ruling.results])
    stored["metadata"] = stored["metadata"] | {"resourceVersion": str(version)}
    at.ledger.observe(convert(ResourceClaim, stored), now)
