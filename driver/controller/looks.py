"""What a question sees of the published devices of a node, whatever those are called.

Two nodes with the same body and the same look differ for the question only by what is in use, by
taints, and by what the node itself is. Knows nothing of those.
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


class Names:
    """Values of one node in the order in which they are met.

    Links and attributes count by which devices share a value; how it is called differs by node.
    """

    def __init__(self) -> None:
        self._met: dict[tuple[str, Hashable], int] = {}

    def number(self, of: str, value: Hashable | None) -> int | None:
        """The number of a value of this link or attribute."""
        return None if value is None else self._met.setdefault((of, value), len(self._met))

    def numbers(self, of: str, values: Values | None) -> Hashable:
        """The numbers of all values of an attribute."""
        if values is None:
            return None
        # In some fixed order, so that equal nodes number their values alike.
        elements = sorted(values.elements, key=repr)
        return values.listed, frozenset([self.number(of, element) for element in elements])


def body(pools: tuple[Pool, ...], make: Callable[[PooledDevice], int]) -> Hashable | None:
    """What counts of these pools whatever is asked; None for pools that are not compared.

    `make` gives the number of what is published of a device apart from names, links and other
    attributes.
    """
    if any(pool.others for pool in pools):
        return None
    names = Names()
    return tuple([(*_frame(pool), _links(pool, make, names)) for pool in pools])


def _frame(pool: Pool) -> tuple[Hashable, ...]:
    counters = tuple(
        (group.name, tuple((name, one.value.nano) for name, one in group.counters.items()))
        for group in pool.counter_sets.values()
    )
    return pool.incomplete, pool.invalid, counters


def _links(pool: Pool, make: Callable[[PooledDevice], int], names: Names) -> Hashable:
    return tuple(
        [
            (
                make(device),
                names.number("nvlink", device.traits.nvlink_group),
                names.number("switch", device.traits.pcie_switch),
                names.number("root", device.traits.pcie_root),
                names.number("numa", device.traits.numa_node),
            )
            for device in pool.devices
        ]
    )


def look_at(pools: tuple[Pool, ...], seen: Aspect) -> Hashable | None:
    """What this aspect of the devices is like; None: like no other.

    Raises `TooDearError`.
    """
    viewer = _Viewer(seen)
    try:
        return tuple([viewer.device(device) for pool in pools for device in pool.devices])
    except AllocationError:
        return None


class _Viewer:
    """One look at one node."""

    def __init__(self, seen: Aspect) -> None:
        self._seen = seen
        self._spent = 0
        self._names = Names()

    def device(self, device: PooledDevice) -> Hashable:
        """What is seen of one device."""
        seen, names = self._seen, self._names
        selected = tuple([self._selected(device, texts) for texts in seen.selectors])
        if not (seen.attributes or seen.derived):
            return selected
        return (
            selected,
            tuple([names.numbers(name, device.attribute(name)) for name in seen.attributes]),
            tuple([self._derived(device, name, text) for name, text in seen.derived]),
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
            return self._names.numbers(name, derive(expression, device.as_selectors_see_it()))
        except SelectorError as error:
            return str(error)
