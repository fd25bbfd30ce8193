"""One published device as the allocator keeps it: what is read often is worked out once.

Knows nothing of what is in use; that is a fact of the moment (see `standing`).
"""

from driver.allocator import attributes
from driver.allocator.attributes import Values
from driver.allocator.capacity import Amounts, Portion, consumption
from driver.allocator.condition import Condition, Traits
from driver.model.allocation import DeviceUse
from driver.model.ids import DeviceId, PoolId
from driver.model.names import (
    NUMA_NODE,
    NVLINK_GROUP,
    PARENT_UUID,
    PCIE_ROOT,
    PCIE_SWITCH,
    PRODUCT_NAME,
    UUID,
)
from driver.model.resourceslice import Device, DeviceAttribute, DeviceTaint, ResourceSlice
from driver.selector.device import SelectorDevice
from driver.selector.judge import Judgement, Subject, judge_of

# Users ask for few different amounts; who asks for very many pays for each of them.
_KEPT_REQUESTS = 64
# What requests take of a device, by the request; None where it cannot serve it.
Portions = dict[tuple[object, ...], Portion | None]


class PooledDevice:
    """A device with its slice. Two are the same only if they are the same object.

    Everything is fixed at publication but `taints`, to which `Inventory` adds those of
    DeviceTaintRules as the rules come and go.
    """

    __slots__ = (
        "_attributes",
        "_condition",
        "_subject",
        "capacity",
        "device",
        "id",
        "portions",
        "shareable",
        "slice",
        "taints",
        "traits",
    )

    def __init__(
        self,
        published: ResourceSlice,
        device: Device,
        *,
        can_share: bool,
        portions: Portions | None = None,
    ) -> None:
        """`portions` are those of another device with the same capacity, if there is one."""
        self.slice = published
        self.device = device
        self.id = DeviceId(published.spec.driver, published.spec.pool.name, device.name)
        self.shareable = can_share and bool(device.allow_multiple_allocations)
        self.taints: tuple[DeviceTaint, ...] = device.taints
        self.traits = _traits(self.id, device, shareable=self.shareable)
        self.capacity = self.traits.capacity
        self._subject = Subject(self.id.driver, device)
        self._attributes: dict[str, Values] = {}
        # They depend on the capacity only: worked out once for all that have the same.
        self.portions: Portions = portions if portions is not None else {}
        self._condition: Condition | None = None

    @property
    def pool(self) -> PoolId:
        """The pool it is in."""
        return PoolId(self.id.driver, self.id.pool)

    def judged(self, expression: str) -> Judgement:
        """What the selector says of the device, or how it fails, and what it costs to find out.

        An error is an answer here, not raised: it counts only where a search meets the device.
        """
        return judge_of(expression).judge(self._subject)

    def as_selectors_see_it(self) -> SelectorDevice:
        """The device as a value of CEL, made once."""
        return self._subject.view

    def under(self, use: DeviceUse) -> Condition:
        """The device with this use of it, kept until it is asked for with another one."""
        known = self._condition
        if known is None or known.use is not use:
            known = self._condition = Condition(self.traits, use)
        return known

    def portion(self, asked: Amounts, *, fractional: bool) -> Portion | None:
        """What such a request takes of it, kept for the next one; None when it cannot serve it.

        See `capacity.consumption`. Raises `CapacityError`.
        """
        key = (asked.key, fractional)
        if key not in self.portions:
            if len(self.portions) >= _KEPT_REQUESTS:
                self.portions.clear()
            amounts = consumption(self.device.capacity, asked.requested, fractional=fractional)
            self.portions[key] = None if amounts is None else Portion(amounts)
        return self.portions[key]

    def attribute(self, name: str) -> Values | None:
        """The value of the attribute with that full name, None where it is not published.

        Raises `AllocationError` for a value of no known type.
        """
        if name not in self._attributes:
            found = attributes.find(self.device, self.id.driver, name)
            if found is None:
                # Not kept: claims may name any number of attributes that no device has.
                return None
            self._attributes[name] = attributes.values(found, name=name, of=self.id)
        return self._attributes[name]


def _traits(name: DeviceId, device: Device, *, shareable: bool) -> Traits:
    driver = name.driver
    parent = _text(attributes.find(device, driver, f"{driver}/{PARENT_UUID}"))
    own = attributes.find(device, driver, f"{driver}/{UUID}")
    return Traits(
        id=name,
        model=_text(attributes.find(device, driver, f"{driver}/{PRODUCT_NAME}")) or "",
        nvlink_group=_text(attributes.find(device, driver, f"{driver}/{NVLINK_GROUP}")),
        pcie_switch=_text(attributes.find(device, driver, f"{driver}/{PCIE_SWITCH}")),
        pcie_root=_text(device.attributes.get(PCIE_ROOT)),
        numa_node=_number(device.attributes.get(NUMA_NODE)),
        shareable=shareable,
        capacity={name: one.value.nano for name, one in device.capacity.items()},
        card=parent or (_text(own) if device.consumes_counters else None),
        part=parent is not None,
    )


def _text(attribute: DeviceAttribute | None) -> str | None:
    if attribute is None:
        return None
    return attribute.string or next(iter(attribute.strings or ()), None)


def _number(attribute: DeviceAttribute | None) -> int | None:
    # A list (KEP-6072) starts with the node that the device is physically on.
    if attribute is None:
        return None
    return attribute.int_ if attribute.int_ is not None else next(iter(attribute.ints or ()), None)
