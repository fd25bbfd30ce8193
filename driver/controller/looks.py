"""What a question sees of the published devices of a node, whatever those are called.

Two nodes with the same look differ for the question only by what is in use, by taints, and by what
the node itself is. Knows nothing of those.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping

import msgspec

from driver.allocator.attributes import Values
from driver.allocator.derived import derive
from driver.allocator.device import PooledDevice
from driver.allocator.pools import SELECTORS_MAY_COST, Pool
from driver.model.deviceclass import DeviceClass
from driver.model.errors import AllocationError, TooDearError
from driver.model.resourceclaim import DeviceSubRequest, ExactDeviceRequest, ResourceClaim
from driver.selector.errors import SelectorError


class Aspect(msgspec.Struct, frozen=True, kw_only=True):
    """What a question pays attention to.

    `selectors` are the expressions of each request, those of its class first; `attributes` the
    names in constraints; `derived` the attributes that requests compute, with their expressions.
    """

    selectors: tuple[tuple[str, ...], ...]
    attributes: tuple[str, ...] = ()
    derived: tuple[tuple[str, str], ...] = ()


def aspect(claims: tuple[ResourceClaim, ...], classes: Mapping[str, DeviceClass]) -> Aspect:
    """What these claims pay attention to."""
    asked = [one for claim in claims for one in _asked(claim)]
    constraints = [one for claim in claims for one in claim.spec.devices.constraints]
    named = (one.match_attribute or one.distinct_attribute for one in constraints)
    derived = {(one.name, one.expression) for ask in asked for one in ask.derived_attributes}
    return Aspect(
        selectors=tuple(dict.fromkeys(_expressions(ask, classes) for ask in asked)),
        attributes=tuple(sorted({name for name in named if name is not None})),
        derived=tuple(sorted(derived)),
    )


def _asked(claim: ResourceClaim) -> Iterator[ExactDeviceRequest | DeviceSubRequest]:
    for request in claim.spec.devices.requests:
        if request.exactly is not None:
            yield request.exactly
        yield from request.first_available


def _expressions(
    asked: ExactDeviceRequest | DeviceSubRequest, classes: Mapping[str, DeviceClass]
) -> tuple[str, ...]:
    known = classes.get(asked.device_class_name)
    of_class = known.spec.selectors if known is not None else ()
    both = (*of_class, *asked.selectors)
    return tuple(one.cel.expression for one in both if one.cel is not None)


class _UnlikeError(Exception):
    """This node has something that is not compared: it is like no other."""


def look_at(
    seen: Aspect, pools: tuple[Pool, ...], make: Callable[[PooledDevice], int]
) -> Hashable | None:
    """Equal for nodes that look the same; None: this one is like no other.

    `make` gives the number of what is published of a device, names apart. Raises `TooDearError`.
    """
    viewer = _Viewer(seen, make)
    try:
        return tuple([viewer.pool(pool) for pool in pools])
    except (_UnlikeError, AllocationError):
        return None


class _Viewer:
    """One look at one node."""

    def __init__(self, seen: Aspect, make: Callable[[PooledDevice], int]) -> None:
        self._seen = seen
        self._make = make
        self._spent = 0
        # Values in the order in which they are met. Links and attributes count by which devices
        # share a value; how it is called differs by node.
        self._met: dict[tuple[str, Hashable], int] = {}

    def pool(self, pool: Pool) -> Hashable:
        """What is seen of one pool."""
        if pool.others:
            raise _UnlikeError
        counters = tuple(
            (group.name, tuple((name, one.value.nano) for name, one in group.counters.items()))
            for group in pool.counter_sets.values()
        )
        devices = tuple([self._device(device) for device in pool.devices])
        return pool.incomplete, pool.invalid, counters, devices

    def _device(self, device: PooledDevice) -> Hashable:
        traits, seen = device.traits, self._seen
        return (
            self._make(device),
            tuple([self._selected(device, expressions) for expressions in seen.selectors]),
            self._value("nvlink", traits.nvlink_group),
            self._value("root", traits.pcie_root),
            self._value("numa", traits.numa_node),
            tuple([self._values(name, device.attribute(name)) for name in seen.attributes]),
            tuple([self._derived(device, name, given) for name, given in seen.derived]),
        )

    def _selected(self, device: PooledDevice, expressions: tuple[str, ...]) -> Hashable:
        """Whether the device passes, or which selector fails and how, as in `Pool.selected`."""
        for index, expression in enumerate(expressions):
            answer, price = device.judged(expression)
            self._spent += price
            if isinstance(answer, TooDearError) or self._spent > SELECTORS_MAY_COST:
                raise TooDearError("the selectors of its requests take too long to be evaluated")
            if isinstance(answer, SelectorError):
                return index, type(answer).__name__, str(answer)
            if not answer:
                return False
        return True

    def _derived(self, device: PooledDevice, name: str, expression: str) -> Hashable:
        try:
            return self._values(name, derive(expression, device.as_selectors_see_it()))
        except SelectorError as error:
            return str(error)

    def _value(self, name: str, value: Hashable | None) -> int | None:
        return None if value is None else self._met.setdefault((name, value), len(self._met))

    def _values(self, name: str, values: Values | None) -> Hashable:
        if values is None:
            return None
        # In some fixed order, so that equal nodes number their values alike.
        elements = sorted(values.elements, key=repr)
        return values.listed, frozenset([self._value(name, element) for element in elements])
