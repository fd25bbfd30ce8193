"""What is asked for and what was given: claims, requests, constraints, allocations.

Source of every field and rule: `k8s.io/api/resource/v1`.
"""

import msgspec

from driver.model.api import ApiStruct, NodeSelector, ObjectMeta, Toleration
from driver.model.ids import DeviceId
from driver.model.quantity import Quantity


class CelSelector(ApiStruct, frozen=True, kw_only=True):
    """A CEL expression over `device`."""

    expression: str


class DeviceSelector(ApiStruct, frozen=True, kw_only=True):
    """One condition on a device; CEL is the only kind there is."""

    cel: CelSelector | None = None


class CapacityRequirements(ApiStruct, frozen=True, kw_only=True):
    """How much of each capacity is asked for."""

    requests: dict[str, Quantity] = {}


class DerivedAttribute(ApiStruct, frozen=True, kw_only=True):
    """An attribute that a request computes from a device (KEP-6080)."""

    name: str
    expression: str


class ExactDeviceRequest(ApiStruct, frozen=True, kw_only=True):
    """One kind of device, and how many of it."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: int = 0
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DerivedAttribute, ...] = ()


class DeviceSubRequest(ApiStruct, frozen=True, kw_only=True):
    """One alternative of a prioritised list (KEP-4816)."""

    name: str
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: int = 0
    tolerations: tuple[Toleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DerivedAttribute, ...] = ()


class DeviceRequest(ApiStruct, frozen=True, kw_only=True):
    """One named request: either `exactly` or the alternatives of `first_available`."""

    name: str
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(ApiStruct, frozen=True, kw_only=True):
    """A condition over the devices of several requests (no requests named: over all)."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class OpaqueDeviceConfiguration(ApiStruct, frozen=True, kw_only=True):
    """Parameters that only the driver understands."""

    driver: str
    parameters: msgspec.Raw = msgspec.Raw(b"{}")


class DeviceClaimConfiguration(ApiStruct, frozen=True, kw_only=True):
    """Configuration for some requests of a claim (none named: for all)."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(ApiStruct, frozen=True, kw_only=True):
    """The devices part of a claim's spec."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(ApiStruct, frozen=True, kw_only=True):
    """What is asked for; immutable once created."""

    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocationResult(ApiStruct, frozen=True, kw_only=True):
    """One device given to one request."""

    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, Quantity] = {}
    skip_node_operations: tuple[str, ...] = ()

    def device_id(self) -> DeviceId:
        """The device this result stands for."""
        return DeviceId(self.driver, self.pool, self.device)


class DeviceAllocationConfiguration(ApiStruct, frozen=True, kw_only=True):
    """Configuration as it was at allocation, with where it came from."""

    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(ApiStruct, frozen=True, kw_only=True):
    """All devices of an allocation with their configuration."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(ApiStruct, frozen=True, kw_only=True):
    """What a claim got, and on which nodes it can be used (no selector: on all)."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(ApiStruct, frozen=True, kw_only=True):
    """Who may use an allocated claim."""

    resource: str = ""
    name: str = ""
    uid: str = ""
    api_group: str = ""


class ResourceClaimStatus(ApiStruct, frozen=True, kw_only=True):
    """What has been decided about a claim; `status.devices` is left to its writers."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()


class ResourceClaim(ApiStruct, frozen=True, kw_only=True):
    """One claim."""

    metadata: ObjectMeta
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(ApiStruct, frozen=True, kw_only=True):
    """What claims made from a template look like."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(ApiStruct, frozen=True, kw_only=True):
    """One template; immutable once created."""

    metadata: ObjectMeta
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()
