"""What an allocation rests on and what is said about it.

`Features` and `DeviceUse` go into the allocator, `Explanation` comes out of it.
"""

from enum import StrEnum

import msgspec

from driver.model.ids import DeviceId
from driver.model.quantity import Quantity


class Features(msgspec.Struct, frozen=True, kw_only=True):
    """Which parts of DRA the cluster serves; the names are those of Kubernetes' allocator."""

    admin_access: bool = False
    prioritized_list: bool = False
    device_taints: bool = False
    partitionable_devices: bool = False
    device_binding_and_status: bool = False
    consumable_capacity: bool = False
    fractional_capacity_range: bool = False
    list_type_attributes: bool = False
    optional_node_operations: bool = False
    derived_attributes: bool = False
    compatibility_groups: bool = False


class DeviceUse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is in use of one device: all of it (`exclusive`), or shares of its capacity.

    Admin access uses nothing and does not appear here. `consumed` is the sum over all shares.
    """

    exclusive: bool = False
    shares: frozenset[str] = frozenset()
    consumed: dict[str, Quantity] = {}


class Term(msgspec.Struct, frozen=True, gc=False):
    """One summand of a score, in words a user understands."""

    name: str
    points: float


class Score(msgspec.Struct, frozen=True, gc=False):
    """How good a choice is: more is better, and the terms add up to the total.

    `then` are the scores of the policies that break ties, in their order.
    """

    terms: tuple[Term, ...] = ()
    then: tuple["Score", ...] = ()

    @property
    def total(self) -> float:
        """The sum of the terms."""
        return sum(term.points for term in self.terms)


class RunnerUp(msgspec.Struct, frozen=True, gc=False):
    """A choice that was possible and scored less, or the same and lost the tie."""

    devices: tuple[DeviceId, ...]
    score: Score


class RejectionKind(StrEnum):
    """Kinds of reasons why a device or a node is out of the question, for whoever counts them.

    Few and fixed: the reason itself is a sentence, with names in it.
    """

    # Of devices.
    NOT_SELECTED = "not-selected"
    IN_USE = "in-use"
    TOO_LITTLE_LEFT = "too-little-left"
    TOO_SMALL = "too-small"
    COUNTERS = "counters"
    RELEASED = "released"
    TAINT = "taint"
    CONSTRAINT = "constraint"
    TOO_FEW = "too-few"
    POOL = "pool"
    FEATURE = "feature"
    ERROR = "error"
    SEARCH_BOUND = "search-bound"
    # Of nodes.
    NODE_TAINT = "node-taint"
    NODE_SELECTION = "node-selection"
    NODE_RESOURCES = "node-resources"
    HOST_PORT = "host-port"


class Rejection(msgspec.Struct, frozen=True, gc=False):
    """Why some devices were no candidates: a reason, of which kind it is, how many, one of them."""

    reason: str
    kind: RejectionKind
    count: int
    example: DeviceId | None = None


class Explanation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Why these devices: what they scored, what came next, what was out of the question.

    `stopped_after` is how many steps the search took where it stopped at its bound: the devices are
    the best that were found until then. 0: it went through all choices.
    """

    policy: str = "first-fit"
    score: Score = Score()
    runners_up: tuple[RunnerUp, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    stopped_after: int = 0
