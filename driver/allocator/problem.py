"""What is to be decided: which claims, on which node, from which devices, under which rules."""

from collections.abc import Mapping

import msgspec

from driver.allocator.pools import Pool
from driver.model.allocation import DeviceUse, Features
from driver.model.core import Node
from driver.model.deviceclass import DeviceClass
from driver.model.ids import DeviceId
from driver.model.resourceclaim import DeviceRequestAllocationResult, ResourceClaim


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Claims to allocate together on one node.

    `usage` says what is in use without these claims. `fixed` gives results that stay as they are,
    by claim index and request name as results spell it ("request" or "request/subrequest"): they
    count for constraints and for use, their alternative is settled, and only the other requests
    are searched. `pinned_subrequests` settles the alternative alone, by claim index and request.
    `excluded` devices are not chosen anew. `driver` is the one whose devices are scored; without
    it all are.
    """

    node: Node
    claims: tuple[ResourceClaim, ...]
    classes: Mapping[str, DeviceClass]
    pools: tuple[Pool, ...]
    usage: Mapping[DeviceId, DeviceUse] = {}
    features: Features = Features()
    fixed: Mapping[tuple[int, str], tuple[DeviceRequestAllocationResult, ...]] = {}
    pinned_subrequests: Mapping[tuple[int, str], str] = {}
    excluded: frozenset[DeviceId] = frozenset()
    driver: str | None = None
