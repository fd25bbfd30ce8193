"""Pods that hold claims of ours without our label: created while the webhook on pods was away.

Their policies, their Events and all that follows a refusal depend on our knowing them. The label
makes the watch show them like all others; the reply to it is the pod as it is now.
"""

import asyncio
from collections.abc import Callable

import msgspec
import structlog

from driver.controller.cluster import Cluster
from driver.controller.translate_patch import LABEL_VALUE
from driver.kube.errors import KubeError
from driver.kube.rest import Rest
from driver.model import names
from driver.model.core import Pod
from driver.model.errors import InvalidObjectError
from driver.model.ids import ObjectKey
from driver.model.resourceclaim import ResourceClaim
from driver.wire.decode import decode
from driver.wire.patch import MERGE_PATCH

_log = structlog.get_logger(__name__)

# The scheduler waits for the answer meanwhile, the API server for 5 s at the most.
WITHIN_S = 1.0


class Strangers:
    """Gets to know pods by way of their claims; `clock` gives monotonic seconds."""

    def __init__(self, rest: Rest, cluster: Cluster, *, clock: Callable[[], float]) -> None:
        self._rest = rest
        self._cluster = cluster
        self._clock = clock

    async def meet(self, claim: ResourceClaim) -> None:
        """Know the pod that this claim is for, if it has one; without it, go on in time."""
        if self._cluster.pod_of(claim) is not None:
            return
        place, uid = consumer(claim)
        if not uid:
            return
        body = {"metadata": {"uid": uid, "labels": {names.POD_LABEL: LABEL_VALUE}}}
        path = f"/api/v1/namespaces/{place.namespace}/pods/{place.name}"
        try:
            async with asyncio.timeout(WITHIN_S):
                reply = await self._rest.patch(
                    path, msgspec.json.encode(body), MERGE_PATCH, repeatable=True
                )
            self._cluster.meet_pod(decode(Pod, reply), self._clock())
        except (KubeError, InvalidObjectError, TimeoutError) as error:
            _log.info("pod not met", pod=str(place), why=str(error) or "no answer in time")


def consumer(claim: ResourceClaim) -> tuple[ObjectKey, str]:
    """Where the pod is that a claim is for, and its UID; empty where it is for none."""
    owner = claim.metadata.controller()
    if owner is not None and owner.kind == "Pod":
        return ObjectKey(claim.metadata.namespace, owner.name), owner.uid
    for consumer in claim.status.reserved_for:
        if consumer.resource == "pods":
            return ObjectKey(claim.metadata.namespace, consumer.name), consumer.uid
    return ObjectKey(claim.metadata.namespace, ""), ""
