"""What a rewritten object does not keep, or keeps in another way: one sentence each.

The rules are those of docs/hami.md.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from driver.controller import translate, translate_patch
from driver.controller.translate import ResourceNames
from driver.model.names import HAMI_MODE, HAMI_NUMA_BIND

_HAMI_SCHEDULER = "hami-scheduler"
# What HAMi's library reads inside a container, and nobody else.
_ENVIRONMENT = ("GPU_CORE_UTILIZATION_POLICY", "CUDA_TASK_PRIORITY", "ACTIVE_OOM_KILLER")
_NODE_LABEL = "gpu"


def losses(
    pod: Mapping[str, Any], spec: Mapping[str, Any], resources: ResourceNames
) -> Iterator[str]:
    """Of a pod before, and its spec afterwards."""
    annotations = pod["metadata"]["annotations"]
    containers = [container for _, _, container in translate_patch.containers(pod)]
    yield from _annotations(annotations, containers, resources)
    yield from _containers(containers, resources)
    yield from _shared_requests(spec)
    if pod["spec"].get("schedulerName") == _HAMI_SCHEDULER:
        yield "schedulerName hami-scheduler is taken out: kube-scheduler places pods with claims"
    if _NODE_LABEL in (pod["spec"].get("nodeSelector") or {}):
        yield (
            "nodeSelector gpu is kept: it is the label by which HAMi's device plugin is placed, so "
            "keep the label on the nodes or take the selector out"
        )


def _annotations(
    annotations: Mapping[str, str], containers: list[Mapping[str, Any]], resources: ResourceNames
) -> Iterator[str]:
    if HAMI_NUMA_BIND in annotations:
        counts = [ask.count for one in containers if (ask := translate.read(one, resources))]
        if all(count == 1 for count in counts):
            yield (
                f"{HAMI_NUMA_BIND} is dropped: every container has one card, there is nothing to "
                "bind"
            )
        else:
            yield (
                f"{HAMI_NUMA_BIND} becomes a constraint: several cards of a container come from "
                "one NUMA node, or the pod waits; HAMi would bind them only where it can"
            )
    if HAMI_MODE in annotations:
        yield (
            f"{HAMI_MODE} is dropped: how a card is shared is said by the DeviceClass or the "
            "claim's configuration (GpuConfig)"
        )


def _containers(containers: list[Mapping[str, Any]], resources: ResourceNames) -> Iterator[str]:
    for container in containers:
        name = container.get("name")
        if translate.priority(container, resources) is not None:
            yield (
                f"container {name}: {resources.priority} becomes CUDA_TASK_PRIORITY, which only "
                "HAMi's library reads; the driver has no priorities on a card"
            )
        for variable in container.get("env") or ():
            if variable.get("name") in _ENVIRONMENT:
                yield (
                    f"container {name}: {variable['name']} is kept, but only HAMi's library reads "
                    "it, where the operator has put it on the nodes"
                )


def _shared_requests(spec: Mapping[str, Any]) -> Iterator[str]:
    """An init container that uses what another container asked for sees that one's limits."""
    users: dict[tuple[str, str], list[str]] = {}
    for part in translate_patch.CONTAINER_LISTS:
        for container in spec.get(part) or ():
            for use in (container.get("resources") or {}).get("claims") or ():
                key = (use.get("name", ""), use.get("request", ""))
                users.setdefault(key, []).append(str(container.get("name")))
    for (_, request), names in users.items():
        if request and len(names) > 1:
            yield (
                f"containers {', '.join(names)} use the same request {request} one after the "
                "other, and all see its limits"
            )
