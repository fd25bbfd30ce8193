"""What one request, or one alternative of it, asks for, and which devices may serve it.

Source of the rules and of the texts of errors: Kubernetes' allocator. Whether a device is still
there is for the search to see; here is only what does not change during a call.
"""

from collections.abc import Mapping

import msgspec

from driver.allocator.attributes import Values
from driver.allocator.capacity import NOTHING, Amounts, CapacityError, Portion
from driver.allocator.constraints import Constraint
from driver.allocator.derived import derive
from driver.allocator.standing import Book, Standing
from driver.allocator.taints import repelling
from driver.model.allocation import Features, RejectionKind
from driver.model.core import Node
from driver.model.deviceclass import DeviceClass
from driver.model.errors import AllocationError
from driver.model.ids import DeviceId
from driver.model.resourceclaim import DeviceSubRequest, ExactDeviceRequest
from driver.selector.errors import CompileError, SelectorError

Asked = ExactDeviceRequest | DeviceSubRequest

OPTIONAL_NODE_OPERATIONS = "DRAOptionalNodeOperations"


class Obstacle(msgspec.Struct, frozen=True):
    """Why a device cannot serve a demand, and of which kind that is."""

    kind: RejectionKind
    reason: str


_RELEASED = Obstacle(RejectionKind.RELEASED, "released a moment ago")
_IN_USE = Obstacle(RejectionKind.IN_USE, "in use")
_COUNTERS = Obstacle(RejectionKind.COUNTERS, "shared counters are used up")
_TOO_SMALL = Obstacle(RejectionKind.TOO_SMALL, "cannot give that much capacity")
_NEEDS_NODE = Obstacle(
    RejectionKind.FEATURE, f"needs a node that declares {OPTIONAL_NODE_OPERATIONS}"
)
_PARTITIONS_OFF = Obstacle(
    RejectionKind.FEATURE, "draws from shared counters, and DRAPartitionableDevices is off"
)
_TAINTED = Obstacle(RejectionKind.TAINT, "has a taint that is not tolerated")
_NONE = Obstacle(RejectionKind.ERROR, "")


class Rules(msgspec.Struct, frozen=True):
    """What the cluster serves, and whether devices may be used that a node need not prepare."""

    features: Features
    may_skip_node_operations: bool

    @classmethod
    def of(cls, features: Features, node: Node) -> "Rules":
        """The rules on this node."""
        declared = OPTIONAL_NODE_OPERATIONS in node.status.declared_features
        return cls(features, features.optional_node_operations and declared)


class Demand:
    """One request or alternative of one claim.

    `name` is as results spell it; `request` is the part before a slash. `constraints` are those of
    the claim that it is under, shared with the other demands of the claim; `derived` gives the
    expressions of attributes that the request computes itself.
    """

    __slots__ = (
        "admin",
        "asked",
        "claim",
        "claim_name",
        "constraints",
        "count",
        "derived",
        "device_class",
        "name",
        "request",
        "requested",
        "takes_all",
    )

    def __init__(
        self,
        asked: Asked,
        device_class: DeviceClass,
        *,
        claim: int,
        claim_name: str,
        name: str,
        constraints: tuple[Constraint, ...],
        derived: Mapping[str, str],
    ) -> None:
        self.asked = asked
        self.device_class = device_class
        self.claim = claim
        self.claim_name = claim_name
        self.name = name
        self.request = name.partition("/")[0]
        self.constraints = constraints
        self.derived = derived
        self.takes_all = asked.allocation_mode == "All"
        self.admin = isinstance(asked, ExactDeviceRequest) and bool(asked.admin_access)
        self.requested = Amounts(asked.capacity.requests if asked.capacity else {})
        # The API server sets a count of 1; manifests that it has not seen may lack it.
        self.count = 0 if self.takes_all else asked.count or 1

    @property
    def described(self) -> str:
        """The demand in the words of an error."""
        return f"claim {self.claim_name}, request {own_name(self.name)}"

    def selectors(self) -> tuple[str, ...]:
        """The expressions a device must pass, those of the class first."""
        both = (*self.device_class.spec.selectors, *self.asked.selectors)
        return tuple(one.cel.expression for one in both if one.cel is not None)

    @property
    def signature(self) -> object:
        """What it asks for, but for its name: equal for demands that ask for the same."""
        asked = self.asked
        return (
            asked.device_class_name,
            asked.selectors,
            asked.allocation_mode,
            self.count,
            asked.tolerations,
            asked.capacity,
        )

    def failure(self, device: DeviceId, index: int, error: SelectorError) -> AllocationError:
        """The error of one selector, in the words of Kubernetes' allocator."""
        of_class = len(self.device_class.spec.selectors)
        # A selector that does not compile fails on all devices.
        compiles = not isinstance(error, CompileError)
        what = f" on device {device}: CEL runtime error" if compiles else ": CEL compile error"
        if index < of_class:
            where = f"class {self.device_class.metadata.name}: selector #{index}"
        else:
            where = f"claim {self.claim_name}: selector #{index - of_class}"
        return AllocationError(f"{where}{what}: {error}")


def own_name(name: str) -> str:
    """The name of a request or alternative without the request that it is an alternative of."""
    return name.rpartition("/")[2]


class Candidate:
    """One device for one demand; what is worked out here is worked out when it is first met.

    `failure` is the selector that cannot be decided for the device, if there is one.
    """

    __slots__ = ("_obstacle", "_portion", "_values", "demand", "failure", "standing")

    def __init__(
        self, demand: Demand, standing: Standing, failure: tuple[int, SelectorError] | None
    ) -> None:
        self.demand = demand
        self.standing = standing
        self.failure = failure
        self._portion: Portion | Obstacle | None = None
        # `_NONE` where there is none; None until it is asked for.
        self._obstacle: Obstacle | None = None
        self._values: tuple[Values | None, ...] | None = None

    def portion(self, rules: Rules) -> Portion | Obstacle:
        """What the demand takes of the device, or why that can never serve it.

        Raises `AllocationError` for a selector that cannot be decided and for an amount that
        cannot be represented.
        """
        if self._portion is None:
            self._portion = self._examine(rules)
        return self._portion

    def wanted_by_all(self, rules: Rules) -> bool:
        """Whether mode All means this device too; raises as `portion` does."""
        return self._capacity(rules.features) is not None

    def obstacle(self, rules: Rules, book: Book) -> Obstacle | None:
        """What alone keeps the device from the demand, constraints apart; None if nothing does.

        To be asked while a search has nothing placed, of which it then says nothing.
        """
        if self._obstacle is None:
            self._obstacle = self._find_obstacle(rules, book) or _NONE
        return self._obstacle if self._obstacle is not _NONE else None

    def _find_obstacle(self, rules: Rules, book: Book) -> Obstacle | None:
        demand, standing = self.demand, self.standing
        if standing.excluded:
            return _RELEASED
        if not standing.open_to(demand.claim, admin=demand.admin):
            return _IN_USE
        try:
            portion = self.portion(rules)
        except AllocationError as error:
            return Obstacle(RejectionKind.ERROR, str(error))
        if isinstance(portion, Obstacle):
            return portion
        short = standing.device.shareable and standing.short_of(portion)
        if short and standing.condition.left()[short] <= 0:
            return _IN_USE
        if short:
            return Obstacle(RejectionKind.TOO_LITTLE_LEFT, f"not enough {short} left")
        return None if book.covers(standing) else _COUNTERS

    def _capacity(self, features: Features) -> Portion | None:
        demand, device = self.demand, self.standing.device
        if self.failure is not None:
            raise demand.failure(device.id, *self.failure)
        if not features.consumable_capacity or not (device.capacity or demand.requested.key):
            return NOTHING
        try:
            return device.portion(demand.requested, fractional=features.fractional_capacity_range)
        except CapacityError as error:
            raise CapacityError(f"{demand.described}, device {device.id}: {error}") from error

    def _examine(self, rules: Rules) -> Portion | Obstacle:
        device, features = self.standing.device, rules.features
        portion = self._capacity(features)
        if portion is None:
            return _TOO_SMALL
        if device.slice.spec.skip_node_operations and not rules.may_skip_node_operations:
            return _NEEDS_NODE
        if device.device.consumes_counters and not features.partitionable_devices:
            return _PARTITIONS_OFF
        taints = device.taints if features.device_taints else ()
        if taints and repelling(taints, self.demand.asked.tolerations):
            return _TAINTED
        return portion

    def values(self) -> tuple[Values | None, ...]:
        """What the device has for each constraint of the demand, in their order."""
        if self._values is None:
            self._values = tuple(self._value(one.attribute) for one in self.demand.constraints)
        return self._values

    def _value(self, attribute: str) -> Values | None:
        device = self.standing.device
        expression = self.demand.derived.get(attribute)
        if expression is None:
            return device.attribute(attribute)
        return derive(expression, device.as_selectors_see_it())
