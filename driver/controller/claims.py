"""The few writes to claims that the controller makes itself.

Every one names the version that it rests on, or changes an annotation of ours only. The controller
never allocates; it takes an allocation away in one case (`driver.controller.reaper`).
"""

import uuid

import msgspec

from driver.kube.errors import Conflict, NotFound
from driver.kube.rest import Rest
from driver.model import names
from driver.model.ids import ObjectKey
from driver.model.resourceclaim import ResourceClaim
from driver.wire.decode import decode
from driver.wire.patch import MERGE_PATCH

TIMEOUT_S = 2.0
# A fence that is on its way is worth more patience than a new one: under load both would be slow.
FENCE_TIMEOUT_S = 5.0
# How a mark begins that only a leader writes; after it stands which process.
_LEADER = "leader-"


def path(claim: ObjectKey, subresource: str = "") -> str:
    """Where the API server keeps a claim."""
    place = f"/apis/resource.k8s.io/v1/namespaces/{claim.namespace}/resourceclaims/{claim.name}"
    return f"{place}/{subresource}" if subresource else place


class ClaimWriter:
    """Reads and writes single claims; raises `driver.kube.errors`."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest
        # By this, what this process writes is known from what others do.
        self._by = uuid.uuid4().hex[:8]

    def is_rival(self, mark: str) -> bool:
        """Whether a leader other than this process has written this (value of `names.FENCE`)."""
        return mark.startswith(_LEADER) and not mark.startswith(_LEADER + self._by)

    async def get(self, claim: ObjectKey) -> ResourceClaim | None:
        """The claim as etcd has it now; None when there is none."""
        try:
            return decode(ResourceClaim, await self._rest.get(path(claim), timeout=TIMEOUT_S))
        except NotFound:
            return None

    async def mark(self, claim: ObjectKey) -> int:
        """Give the claim a new version by an annotation that never repeats; that version."""
        marked = await self._patch(claim, {}, str(uuid.uuid4()), within=TIMEOUT_S)
        return int(marked.metadata.resource_version)

    async def announce(self, claim: ObjectKey) -> None:
        """Mark the claim as a new leader does (see `driver.controller.rivals`)."""
        await self._patch(claim, {}, self._as_leader(), within=TIMEOUT_S)

    async def fence(self, claim: ObjectKey, uid: str, base: int) -> ResourceClaim | None:
        """The same, if the claim is still at `base`: no write on top of it can land afterwards.

        None when the claim has moved on, or is gone.
        """
        precondition = {"uid": uid, "resourceVersion": str(base)}
        try:
            return await self._patch(claim, precondition, self._as_leader(), within=FENCE_TIMEOUT_S)
        except (Conflict, NotFound):
            return None

    async def deallocate(self, claim: ResourceClaim) -> bool:
        """Take the allocation away, if the claim is still as given; whether that happened."""
        place = ObjectKey(claim.metadata.namespace, claim.metadata.name)
        precondition = {
            "uid": claim.metadata.uid,
            "resourceVersion": claim.metadata.resource_version,
        }
        body = {"metadata": precondition, "status": {"allocation": None, "reservedFor": None}}
        try:
            await self._rest.patch(
                path(place, "status"), msgspec.json.encode(body), MERGE_PATCH, timeout=TIMEOUT_S
            )
        except (Conflict, NotFound):
            return False
        return True

    async def _patch(
        self, claim: ObjectKey, precondition: dict[str, str], mark: str, *, within: float
    ) -> ResourceClaim:
        annotations = {names.FENCE: mark}
        body = {"metadata": {**precondition, "annotations": annotations}}
        reply = await self._rest.patch(
            path(claim), msgspec.json.encode(body), MERGE_PATCH, timeout=within
        )
        return decode(ResourceClaim, reply)

    def _as_leader(self) -> str:
        return f"{_LEADER}{self._by}-{uuid.uuid4()}"
