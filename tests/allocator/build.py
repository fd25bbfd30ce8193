"""Tiny builders: a test says only what it is about.

Builders are frozen; every `with_…` returns a changed copy.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Self

import msgspec
from msgspec.structs import replace

from driver.allocator.allocate import allocate
from driver.allocator.inventory import Inventory
from driver.allocator.outcome import Allocated, Unsatisfiable
from driver.allocator.pools import Pool, Published, in_order, pool_on
from driver.allocator.problem import Problem
from driver.model.allocation import DeviceUse, Features
from driver.model.api import ObjectMeta, Toleration
from driver.model.core import Node
from driver.model.deviceclass import (
    DeviceClass,
    DeviceClassSpec,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
)
from driver.model.ids import DeviceId, PoolId
from driver.model.names import (
    DRIVER,
    MEMORY,
    NUMA_NODE,
    NVLINK_GROUP,
    PCIE_ROOT,
    PCIE_SWITCH,
    PRODUCT_NAME,
)
from driver.model.quantity import parse
from driver.model.resourceclaim import (
    CapacityRequirements,
    CelSelector,
    DeviceClaim,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from driver.model.resourceslice import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceTaint,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)

NODE = "node-1"
CLASS = "gpu"

ALL_FEATURES = Features(**dict.fromkeys(Features.__struct_fields__, True))


class ADevice(msgspec.Struct, frozen=True):
    """A device in the making."""

    made: Device

    def renamed(self, name: str) -> Self:
        """The same under another name."""
        return replace(self, made=replace(self.made, name=name))

    def with_attribute(self, name: str, value: str | int | bool | tuple[str, ...]) -> Self:
        """An attribute of the type of the value."""
        attribute = DeviceAttribute(
            bool_=value if isinstance(value, bool) else None,
            int_=value if isinstance(value, int) and not isinstance(value, bool) else None,
            string=value if isinstance(value, str) else None,
            strings=value if isinstance(value, tuple) else None,
        )
        attributes = {**self.made.attributes, name: attribute}
        return replace(self, made=replace(self.made, attributes=attributes))

    def with_links(
        self, *, group: str | None = None, switch: str = "", root: str = "", numa: int = 0
    ) -> Self:
        """NVLink group, PCIe switch, PCIe root and NUMA node."""
        linked = self if group is None else self.with_attribute(NVLINK_GROUP, group)
        linked = linked.with_attribute(PCIE_SWITCH, switch) if switch else linked
        linked = linked.with_attribute(NUMA_NODE, numa)
        return linked.with_attribute(PCIE_ROOT, root) if root else linked

    def with_capacity(self, name: str, value: str, *, step: str | None = None) -> Self:
        """A capacity; with a step it is requested in steps from the step on."""
        policy = None
        if step is not None:
            legal = CapacityRequestPolicyRange(min=parse(step), step=parse(step))
            policy = CapacityRequestPolicy(default=parse(value), valid_range=legal)
        capacity = {
            **self.made.capacity,
            name: DeviceCapacity(value=parse(value), request_policy=policy),
        }
        return replace(self, made=replace(self.made, capacity=capacity))

    def shareable(self) -> Self:
        """Several claims may have a part of it."""
        return replace(self, made=replace(self.made, allow_multiple_allocations=True))

    def with_counters(self, counter_set: str, *groups: str, **amounts: int) -> Self:
        """What it draws from a counter set."""
        use = DeviceCounterConsumption(
            counter_set=counter_set,
            counters={name: Counter(value=parse(str(n))) for name, n in amounts.items()},
            compatibility_groups=groups,
        )
        uses = (*self.made.consumes_counters, use)
        return replace(self, made=replace(self.made, consumes_counters=uses))

    def with_taint(self, key: str, effect: str = "NoSchedule") -> Self:
        """A taint without a value."""
        taints = (*self.made.taints, DeviceTaint(key=key, effect=effect))
        return replace(self, made=replace(self.made, taints=taints))

    def with_binding_conditions(self, *conditions: str) -> Self:
        """Conditions to wait for before a pod is bound."""
        return replace(self, made=replace(self.made, binding_conditions=conditions))


def device(name: str) -> ADevice:
    """A whole device without properties."""
    return ADevice(Device(name=name))


def card(index: int, memory: str, model: str = "T4") -> ADevice:
    """A shareable card as the node plugin publishes it, memory in steps of 1Mi."""
    made = device(f"gpu-{index}").with_capacity(MEMORY, memory, step="1Mi").shareable()
    return made.with_attribute(PRODUCT_NAME, model)


def gpus(count: int, *, per_group: int = 4) -> list[ADevice]:
    """Whole GPUs, in NVLink groups, two to a PCIe root, a NUMA node for each group."""
    return [
        device(f"gpu-{index}").with_links(
            group=f"group-{index // per_group}",
            root=f"pci{index // 2}",
            numa=index // per_group,
        )
        for index in range(count)
    ]


class ASlice(msgspec.Struct, frozen=True):
    """A slice in the making."""

    made: ResourceSlice

    def with_spec(self, **changed: object) -> Self:
        """Other members of its spec."""
        return replace(self, made=replace(self.made, spec=replace(self.made.spec, **changed)))

    def with_counter_set(self, name: str, **amounts: int) -> Self:
        """Counters that devices of the pool share."""
        counters = {one: Counter(value=parse(str(n))) for one, n in amounts.items()}
        sets = (*self.made.spec.shared_counters, CounterSet(name=name, counters=counters))
        return self.with_spec(shared_counters=sets)

    def on(self, node: str) -> Self:
        """The node that reaches it."""
        return self.with_spec(node_name=node)


def slice_of(
    *devices: ADevice, name: str = "slice", pool: str = NODE, driver: str = DRIVER, slices: int = 1
) -> ASlice:
    """A slice of the node's pool."""
    return ASlice(
        ResourceSlice(
            metadata=ObjectMeta(name=name),
            spec=ResourceSliceSpec(
                driver=driver,
                pool=ResourcePool(name=pool, generation=1, resource_slice_count=slices),
                node_name=NODE,
                devices=tuple(one.made for one in devices),
            ),
        )
    )


Asked = ExactDeviceRequest | DeviceSubRequest


class ARequest(msgspec.Struct, frozen=True):
    """A request in the making."""

    made: DeviceRequest

    def _with(self, **changed: object) -> Self:
        exactly = self.made.exactly
        assert exactly is not None, "only an exact request can be changed"
        return replace(self, made=replace(self.made, exactly=replace(exactly, **changed)))

    def named(self, name: str) -> Self:
        """The same under another name."""
        return replace(self, made=replace(self.made, name=name))

    def with_selector(self, expression: str) -> Self:
        """A selector of its own."""
        return self._with(selectors=(DeviceSelector(cel=CelSelector(expression=expression)),))

    def with_capacity(self, **amounts: str) -> Self:
        """How much of each capacity."""
        wanted = {name: parse(text) for name, text in amounts.items()}
        return self._with(capacity=CapacityRequirements(requests=wanted))

    def tolerating(self, key: str) -> Self:
        """A taint that it puts up with."""
        return self._with(tolerations=(Toleration(key=key, operator="Exists"),))

    def with_admin_access(self) -> Self:
        """A look at devices, whoever uses them."""
        return self._with(admin_access=True)

    def for_all(self) -> Self:
        """All devices that match."""
        return self._with(allocation_mode="All")


def request(name: str = "gpu", count: int = 1, class_name: str = CLASS) -> ARequest:
    """So many whole devices of a class."""
    return ARequest(
        DeviceRequest(
            name=name,
            exactly=ExactDeviceRequest(device_class_name=class_name, count=count),
        )
    )


def first_available(name: str, *alternatives: ARequest) -> ARequest:
    """The first of the alternatives that can be served."""
    members = DeviceSubRequest.__struct_fields__
    options = [
        DeviceSubRequest(
            name=one.made.name,
            **{m: getattr(one.made.exactly, m) for m in members if m != "name"},
        )
        for one in alternatives
    ]
    return ARequest(DeviceRequest(name=name, first_available=tuple(options)))


class AClaim(msgspec.Struct, frozen=True):
    """A claim in the making."""

    made: ResourceClaim

    def _with(self, **changed: object) -> Self:
        devices = replace(self.made.spec.devices, **changed)
        return replace(self, made=replace(self.made, spec=ResourceClaimSpec(devices=devices)))

    def matching(self, attribute: str, *requests: str) -> Self:
        """All devices share the attribute."""
        one = DeviceConstraint(match_attribute=attribute, requests=requests)
        return self._with(constraints=(*self.made.spec.devices.constraints, one))

    def distinct_in(self, attribute: str, *requests: str) -> Self:
        """No two devices share the attribute."""
        one = DeviceConstraint(distinct_attribute=attribute, requests=requests)
        return self._with(constraints=(*self.made.spec.devices.constraints, one))


def claim(*requests: ARequest, name: str = "claim") -> AClaim:
    """A claim for these requests; without any, for one device."""
    asked = tuple(one.made for one in requests or (request(),))
    return AClaim(
        ResourceClaim(
            metadata=ObjectMeta(name=name),
            spec=ResourceClaimSpec(devices=DeviceClaim(requests=asked)),
        )
    )


def in_use(*names: str, pool: str = NODE) -> dict[DeviceId, DeviceUse]:
    """These devices are held whole."""
    return {DeviceId(DRIVER, pool, name): DeviceUse(exclusive=True) for name in names}


def shared(name: str, memory: str, shares: int = 1, pool: str = NODE) -> dict[DeviceId, DeviceUse]:
    """So many shares of a device that take so much memory together."""
    ids = frozenset(f"{name}-{number}" for number in range(shares))
    return {DeviceId(DRIVER, pool, name): DeviceUse(shares=ids, consumed={MEMORY: parse(memory)})}


def node(name: str = NODE, **labels: str) -> Node:
    """A node that has every optional feature."""
    return Node(metadata=ObjectMeta(name=name, labels=labels))


def device_class(name: str = CLASS, *expressions: str) -> DeviceClass:
    """A class; without selectors it has every device."""
    selectors = tuple(DeviceSelector(cel=CelSelector(expression=one)) for one in expressions)
    return DeviceClass(metadata=ObjectMeta(name=name), spec=DeviceClassSpec(selectors=selectors))


def problem(
    slices: Iterable[ASlice | ResourceSlice],
    *claims: AClaim,
    use: Mapping[DeviceId, DeviceUse] | None = None,
    features: Features = ALL_FEATURES,
    on: Node | None = None,
    classes: Iterable[DeviceClass] = (),
    **more: object,
) -> Problem:
    """The claims on the node, with all features on."""
    where = on or node()
    published = [one.made if isinstance(one, ASlice) else one for one in slices]
    made = Problem(
        node=where,
        claims=tuple(one.made for one in claims),
        classes={one.metadata.name: one for one in (device_class(), *classes)},
        pools=visible_pools(published, where, features),
        usage=use or {},
        features=features,
    )
    return replace(made, **more)


def chosen(outcome: Allocated | Unsatisfiable) -> list[str]:
    """The names of the devices that were allocated, in the order of the results."""
    assert isinstance(outcome, Allocated), outcome.reason()
    return [
        result.device for allocation in outcome.allocations for result in allocation.devices.results
    ]


def taint_rule(name: str, *, device: str) -> DeviceTaintRule:
    """A rule that keeps pods from one device; the taint's key is the rule's name."""
    selector = DeviceTaintSelector(driver=DRIVER, pool=NODE, device=device)
    taint = DeviceTaint(key=name, effect="NoSchedule")
    return DeviceTaintRule(
        metadata=ObjectMeta(name=name),
        spec=DeviceTaintRuleSpec(taint=taint, device_selector=selector),
    )


def allocate_names(inventory: Inventory, *claims: AClaim) -> list[str]:
    """What first fit gives the claims on the node."""
    asked = replace(problem((), *claims), pools=inventory.pools(node()))
    return chosen(allocate(asked))


def visible_pools(
    slices: Iterable[ResourceSlice], where: Node, features: Features
) -> tuple[Pool, ...]:
    """All pools of the slices that the node sees, worked out afresh, in the order of trial."""
    by_pool: defaultdict[PoolId, list[Published]] = defaultdict(list)
    for one in slices:
        by_pool[PoolId(one.spec.driver, one.spec.pool.name)].append(Published(one, features))
    seen = (pool_on(where, pool_id, members, features) for pool_id, members in by_pool.items())
    return in_order(pool for pool in seen if pool is not None)
