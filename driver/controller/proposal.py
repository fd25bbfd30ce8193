"""What the scheduler proposes in one commit: which part is ours to choose, which part stays.

Pure reading of the object under review. It decides nothing.
"""

from typing import Any

import msgspec

from driver.controller.ledger import AnswerKey
from driver.model.api import NodeSelector
from driver.model.errors import InvalidObjectError
from driver.model.ids import ClaimUid, NodeName, ObjectKey
from driver.model.resourceclaim import (
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from driver.wire.admission import AdmissionRequest
from driver.wire.decode import decode
from driver.wire.unknown import unknown_in


class Proposal(msgspec.Struct, frozen=True):
    """A claim as the scheduler wants it stored, on top of `base`.

    `claim` has the new status on everything else as it is stored: a status update changes nothing
    else, whatever it says, and it may even leave the UID out.
    """

    claim: ResourceClaim
    base: int
    sent_on: int
    unknown: tuple[str, ...]

    @property
    def uid(self) -> ClaimUid:
        """The claim's UID."""
        return ClaimUid(self.claim.metadata.uid)

    @property
    def key(self) -> ObjectKey:
        """The claim's place."""
        return ObjectKey(self.claim.metadata.namespace, self.claim.metadata.name)

    @property
    def results(self) -> tuple[DeviceRequestAllocationResult, ...]:
        """All devices that the scheduler picked, those of other drivers included."""
        allocation = self.claim.status.allocation
        return allocation.devices.results if allocation is not None else ()


def read(request: AdmissionRequest) -> Proposal | None:
    """The proposal under review; None when this update allocates nothing.

    Raises `InvalidObjectError` when the objects cannot be read.
    """
    old = decode(ResourceClaim, request.old_object)
    new = decode(ResourceClaim, request.object)
    if old.status.allocation is not None or new.status.allocation is None:
        return None
    raw = msgspec.json.decode(request.object)
    spec = msgspec.json.decode(request.old_object).get("spec", {})
    return Proposal(
        claim=msgspec.structs.replace(old, status=new.status),
        base=_version(old),
        sent_on=_version(new),
        unknown=unknown_in(ResourceClaim, _read_part(spec, raw)),
    )


def _read_part(spec: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Only what an allocation depends on: `status.devices` belongs to the drivers."""
    allocation = {"allocation": new["status"]["allocation"]}
    return {"metadata": {}, "spec": spec, "status": allocation}


def _version(claim: ResourceClaim) -> int:
    version = claim.metadata.resource_version
    if not version.isdigit():
        raise InvalidObjectError(
            f"claim {claim.metadata.namespace}/{claim.metadata.name} has resourceVersion "
            f"{version!r}; expected a number, as etcd gives it"
        )
    return int(version)


def ours(result: DeviceRequestAllocationResult, driver: str) -> bool:
    """Whether this result's device may be another one of our driver."""
    return result.driver == driver and not result.admin_access


def node_of(selector: NodeSelector | None) -> NodeName | None:
    """The one node that an allocation is bound to; None when it is usable on several.

    Only the exact form that the scheduler writes for node-local devices counts.
    """
    if selector is None or len(selector.node_selector_terms) != 1:
        return None
    term = selector.node_selector_terms[0]
    if term.match_expressions or len(term.match_fields) != 1:
        return None
    field = term.match_fields[0]
    if field.key != "metadata.name" or field.operator != "In" or len(field.values) != 1:
        return None
    return NodeName(field.values[0])


def answer_key(proposal: Proposal, driver: str) -> AnswerKey:
    """What makes a later question the same one: all of the proposal but our choice of devices."""
    allocation = proposal.claim.status.allocation
    node = node_of(allocation.node_selector) if allocation is not None else None
    kept = [
        (result.request, "" if ours(result, driver) else str(result.device_id()))
        for result in proposal.results
    ]
    return AnswerKey(base=proposal.base, proposal=repr((node, kept)))
