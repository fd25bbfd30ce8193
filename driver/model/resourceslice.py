"""What a driver publishes: slices of a pool, their devices, counters and taints.

Source of every field and rule: `k8s.io/api/resource/v1`.
"""

from driver.model.api import ApiStruct, NodeSelector, ObjectMeta
from driver.model.quantity import Quantity


class DeviceAttribute(
    ApiStruct, frozen=True, kw_only=True, rename={"int_": "int", "bool_": "bool"}
):
    """One value of a device; exactly one field is set."""

    int_: int | None = None
    bool_: bool | None = None
    string: str | None = None
    version: str | None = None
    ints: tuple[int, ...] | None = None
    bools: tuple[bool, ...] | None = None
    strings: tuple[str, ...] | None = None
    versions: tuple[str, ...] | None = None


class CapacityRequestPolicyRange(ApiStruct, frozen=True, kw_only=True):
    """Legal amounts: from `min` in steps of `step` up to `max`."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(ApiStruct, frozen=True, kw_only=True):
    """How a request for a capacity is defaulted and rounded (KEP-5075)."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(ApiStruct, frozen=True, kw_only=True):
    """How much of something a device has."""

    value: Quantity
    request_policy: CapacityRequestPolicy | None = None


class Counter(ApiStruct, frozen=True, kw_only=True):
    """An amount of a shared counter."""

    value: Quantity


class CounterSet(ApiStruct, frozen=True, kw_only=True):
    """Counters that several devices of a pool draw from (KEP-4815)."""

    name: str
    counters: dict[str, Counter] = {}


class DeviceCounterConsumption(ApiStruct, frozen=True, kw_only=True):
    """What a device draws from one counter set while it is allocated."""

    counter_set: str
    counters: dict[str, Counter] = {}
    compatibility_groups: tuple[str, ...] = ()


class DeviceTaint(ApiStruct, frozen=True, kw_only=True):
    """Why a device should not be used; effects None, NoSchedule, NoExecute."""

    key: str
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class Device(ApiStruct, frozen=True, kw_only=True):
    """One device as published; its identity is (driver, pool, name)."""

    name: str
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None


class ResourcePool(ApiStruct, frozen=True, kw_only=True):
    """Which pool a slice is part of; the highest generation counts, when it is complete."""

    name: str
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(ApiStruct, frozen=True, kw_only=True):
    """Devices or counters of one pool, and the nodes that reach them."""

    driver: str
    pool: ResourcePool
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
    skip_node_operations: tuple[str, ...] = ()


class ResourceSlice(ApiStruct, frozen=True, kw_only=True):
    """One published slice."""

    metadata: ObjectMeta
    spec: ResourceSliceSpec
