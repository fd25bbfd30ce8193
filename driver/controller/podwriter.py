"""The writes that placement makes to pods: a node nominated, a nomination cleared, a gate lifted.

Every write is tested against what it changes, so that it hits neither another pod of the same name
nor what somebody else wrote, and may be sent twice.
"""

from typing import Protocol

import structlog

from driver.kube.errors import KubeError, NotFound
from driver.kube.rest import Rest
from driver.model import names
from driver.model.core import Pod
from driver.wire.patch import JSON_PATCH, Operation, add, document, pointer, remove, test

_log = structlog.get_logger(__name__)

TIMEOUT_S = 10.0
_NOMINATED = pointer("status", "nominatedNodeName")


class PodWriter(Protocol):
    """Applies JSON patches to pods; raises `driver.kube.errors.KubeError`."""

    async def patch_pod(self, namespace: str, name: str, operations: list[Operation]) -> None:
        """Patch the pod."""
        ...

    async def patch_pod_status(
        self, namespace: str, name: str, operations: list[Operation]
    ) -> None:
        """Patch the pod's status."""
        ...


class RestPodWriter:
    """Writes through the API server."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def patch_pod(self, namespace: str, name: str, operations: list[Operation]) -> None:
        """Patch the pod."""
        await self._patch(f"/api/v1/namespaces/{namespace}/pods/{name}", operations)

    async def patch_pod_status(
        self, namespace: str, name: str, operations: list[Operation]
    ) -> None:
        """Patch the pod's status."""
        await self._patch(f"/api/v1/namespaces/{namespace}/pods/{name}/status", operations)

    async def _patch(self, path: str, operations: list[Operation]) -> None:
        await self._rest.patch(
            path, document(operations), JSON_PATCH, timeout=TIMEOUT_S, repeatable=True
        )


async def nominate(writer: PodWriter, pod: Pod, node: str) -> bool:
    """Nominate a node for the pod; whether that is written.

    A nomination only helps, so that a failure is logged and not raised, but for `NotFound`.
    """
    return await _patch_status(writer, pod, [add(_NOMINATED, node)])


async def take_back(writer: PodWriter, pod: Pod, node: str) -> bool:
    """Take the nomination of this node back, if it is still there; whether it was.

    Fails as `nominate` does.
    """
    return await _patch_status(writer, pod, [test(_NOMINATED, node), remove(_NOMINATED)])


async def lift_gate(writer: PodWriter, pod: Pod) -> None:
    """Lift our gate, which the pod must have; the gates of others stay.

    Raises `NotFound` when the pod is gone, `Invalid` when its gates are others than thought.
    """
    index = [gate.name for gate in pod.spec.scheduling_gates].index(names.PLACEMENT_GATE)
    place = pointer("spec", "schedulingGates", index)
    operations = [_same(pod), test(f"{place}/name", names.PLACEMENT_GATE), remove(place)]
    await writer.patch_pod(pod.metadata.namespace, pod.metadata.name, operations)


async def _patch_status(writer: PodWriter, pod: Pod, operations: list[Operation]) -> bool:
    namespace, name = pod.metadata.namespace, pod.metadata.name
    try:
        await writer.patch_pod_status(namespace, name, [_same(pod), *operations])
    except NotFound:
        raise
    except KubeError as error:
        _log.warning("nomination not written", pod=f"{namespace}/{name}", error=str(error))
        return False
    return True


def _same(pod: Pod) -> Operation:
    return test(pointer("metadata", "uid"), pod.metadata.uid)
