"""What would make a pod fit that fits nowhere, in sentences; the likeliest first."""

from collections.abc import Iterator

from driver.cli.explanation.inquiry import Inquiry
from driver.controller.cluster import Cluster
from driver.controller.planner import ending_pods
from driver.model.resourceclaim import ResourceClaim

_FEW = 3
_NOT_EVEN_EMPTY = (
    "no node could serve it even if nothing were in use: ask for less, for other devices, or add "
    "a node that has them"
)

_MEND_THE_CLAIM = "correct what the reason names first; devices are searched only after that"


def remedies(inquiry: Inquiry, cluster: Cluster) -> tuple[str, ...]:
    """One sentence for each reason that can be helped; never empty."""
    found = [
        _with_holders(one.remedy, one.example, cluster) for one in inquiry.rejections if one.remedy
    ]
    if found:
        return tuple(found)
    if not cluster.nodes:
        return ("add a node with devices: there is no node at all",)
    if inquiry.stops_with_error():
        return (_MEND_THE_CLAIM,)
    # For each reason only some nodes were tried; here all are, before anything is said of all.
    empty = inquiry.fits_when_empty()
    if empty is None:
        return (_NOT_EVEN_EMPTY,)
    return (_with_holders(ending_pods(empty), empty, cluster),)


def _with_holders(remedy: str, node: str, cluster: Cluster) -> str:
    """The remedy with the claims that hold the node's devices, where that is what it is about."""
    held = sorted(_holders(cluster, node))
    if not held or remedy != ending_pods(node):
        return remedy
    more = f" and {len(held) - _FEW} more" if len(held) > _FEW else ""
    return f"{remedy}: {', '.join(held[:_FEW])}{more}"


def _holders(cluster: Cluster, node: str) -> Iterator[str]:
    for key, claim in cluster.claims.items():
        if _is_on(claim, node, cluster):
            users = [user.name for user in claim.status.reserved_for if user.resource == "pods"]
            yield f"pod {key.namespace}/{users[0]}" if users else f"claim {key}"


def _is_on(claim: ResourceClaim, node: str, cluster: Cluster) -> bool:
    allocation = claim.status.allocation
    for result in allocation.devices.results if allocation is not None else ():
        published = cluster.inventory.find(result.device_id())
        if published is not None and published.slice.spec.node_name == node:
            return True
    return False
