"""One published device as the allocator keeps it: what is read often is worked out once.

Knows nothing of what is in use; that is a fact of the moment (see `standing`).
"""

from driver.allocator import attributes
from driver.allocator.attributes import Values
from driver.allocator.capacity import Amounts, Portion, consumption
from driver.allocator.condition import Condition, Traits
from driver.model.allocation import DeviceUse
from driver.model.errors import TooDearError
from driver.model.ids import DeviceId, PoolId
from driver.model.names import NUMA_NODE, NVLINK_GROUP, PCIE_ROOT, PRODUCT_NAME
from driver.model.resourceslice import Device, DeviceAttribute, DeviceTaint, ResourceSlice
from driver.selector.device import SelectorDevice
from driver.selector.errors import SelectorError
from driver.selector.program import compile_selector

# What one selector may cost on one device; see `Program.judge` for what that means.
_SELECTOR_MAY_COST = 50_000
# Claims may each bring selectors of their own: answers that nobody asks for again must go.
_MOST_ANSWERS = 512

# Users ask for few different amounts; who asks for very many pays for each of them.
_KEPT_REQUESTS = 64


class PooledDevice:
    """A device with its slice. Two are the same only if they are the same object.

    Everything is fixed at publication but `taints`, to which `Inventory` adds those of
    DeviceTaintRules as the rules come and go.
    """

    __slots__ = (
        "_attributes",
        "_condition",
        "_judged",
        "_portions",
        "_selector_device",
        "capacity",
        "device",
        "id",
        "shareable",
        "slice",
        "taints",
        "traits",
    )

    def __init__(self, published: ResourceSlice, device: Device, *, can_share: bool) -> None:
        self.slice = published
        self.device = device
        self.id = DeviceId(published.spec.driver, published.spec.pool.name, device.name)
        self.shareable = can_share and bool(device.allow_multiple_allocations)
        self.taints: tuple[DeviceTaint, ...] = device.taints
        self.traits = _traits(self.id, device, shareable=self.shareable)
        self.capacity = self.traits.capacity
        self._selector_device: SelectorDevice | None = None
        self._judged: dict[str, _Judgement] = {}
        self._attributes: dict[str, Values] = {}
        self._portions: dict[tuple[object, ...], Portion | None] = {}
        self._condition: Condition | None = None

    @property
    def pool(self) -> PoolId:
        """The pool it is in."""
        return PoolId(self.id.driver, self.id.pool)

    def selected(self, expression: str) -> bool | SelectorError:
        """What the selector says of the device, or how it fails; worked out once.

        An error is an answer here, not raised: it counts only where a search meets the device.
        Raises `TooDearError`.
        """
        answer = self._judgement(expression)[0]
        if isinstance(answer, TooDearError):
            raise TooDearError(str(answer))
        return answer

    def price(self, expression: str) -> int:
        """What it has cost to find out what the selector says, in CEL's units."""
        return self._judgement(expression)[1]

    def _judgement(self, expression: str) -> "_Judgement":
        known = self._judged.get(expression)
        if known is None:
            if len(self._judged) >= _MOST_ANSWERS:
                self._judged.clear()
            known = self._judged[expression] = self._evaluate(expression)
        return known

    def _evaluate(self, expression: str) -> "_Judgement":
        try:
            program = compile_selector(expression)
            return program.judge(self.as_selectors_see_it(), _SELECTOR_MAY_COST)
        except TooDearError as error:
            return error, _SELECTOR_MAY_COST
        except SelectorError as error:
            return error, 0

    def as_selectors_see_it(self) -> SelectorDevice:
        """The device as a value of CEL, made once."""
        if self._selector_device is None:
            self._selector_device = SelectorDevice.of(self.id.driver, self.device)
        return self._selector_device

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
        if key not in self._portions:
            if len(self._portions) >= _KEPT_REQUESTS:
                self._portions.clear()
            amounts = consumption(self.device.capacity, asked.requested, fractional=fractional)
            self._portions[key] = None if amounts is None else Portion(amounts)
        return self._portions[key]

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


_Judgement = tuple[bool | SelectorError | TooDearError, int]


def _traits(name: DeviceId, device: Device, *, shareable: bool) -> Traits:
    driver = name.driver
    return Traits(
        id=name,
        model=_text(attributes.find(device, driver, f"{driver}/{PRODUCT_NAME}")) or "",
        nvlink_group=_text(attributes.find(device, driver, f"{driver}/{NVLINK_GROUP}")),
        pcie_root=_text(device.attributes.get(PCIE_ROOT)),
        numa_node=_number(device.attributes.get(NUMA_NODE)),
        shareable=shareable,
        capacity={name: one.value.nano for name, one in device.capacity.items()},
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
