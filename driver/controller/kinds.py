"""Which nodes are the same for a question: equal devices in equal use, whatever their names.

Clusters are built of many equal nodes, and most of them are in one of a few states, so that a
question has to be answered for each state only once.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping

from driver.allocator.attributes import Values
from driver.allocator.device import PooledDevice
from driver.allocator.pools import SELECTORS_MAY_COST, Pool
from driver.allocator.problem import Problem
from driver.model.errors import AllocationError, TooDearError
from driver.model.quantity import Quantity
from driver.model.resourceclaim import DeviceSubRequest, ExactDeviceRequest, ResourceClaim
from driver.selector.errors import SelectorError

# Forget what was worked out for so many devices: most of them are published no longer.
_MOST_DEVICES = 100_000


class Makes:
    """What is published of devices, as numbers: with the same one, two differ only in names.

    Shared by all questions, because it depends on none.
    """

    def __init__(self) -> None:
        self._of: dict[PooledDevice, int] = {}
        self._numbers: dict[Hashable, int] = {}

    def of(self, device: PooledDevice) -> int:
        """The number of this device's make."""
        known = self._of.get(device)
        if known is None:
            if len(self._of) > _MOST_DEVICES:
                self._of.clear()
            known = self._numbers.setdefault(_published(device), len(self._numbers))
            self._of[device] = known
        return known


class _SpecialError(Exception):
    """This node has something that is not compared: it is like no other."""


class _Names:
    """Values of one node in the order in which they are met.

    Links and attributes count by which devices share a value; how it is called differs by node.
    """

    def __init__(self) -> None:
        self._met: dict[tuple[str, Hashable], int] = {}

    def __call__(self, name: str, value: Hashable | None) -> int | None:
        return None if value is None else self._met.setdefault((name, value), len(self._met))

    def all(self, name: str, values: Values | None) -> Hashable:
        if values is None:
            return None
        # In some fixed order, so that equal nodes number their values alike.
        elements = sorted(values.elements, key=repr)
        return values.listed, frozenset(self(name, element) for element in elements)


class Kinds:
    """Tells the kind of a node for these claims."""

    def __init__(self, claims: tuple[ResourceClaim, ...], makes: Makes) -> None:
        asked = tuple(_asked(claims))
        self._classes = tuple(dict.fromkeys(one.device_class_name for one in asked))
        self._own = tuple(one.cel.expression for ask in asked for one in ask.selectors if one.cel)
        self._derives = any(one.derived_attributes for one in asked)
        self._attributes = tuple(sorted(set(_attributes(claims))))
        self._makes = makes

    def of(self, problem: Problem) -> Hashable | None:
        """Equal for nodes on which the claims get equal devices; None: this one is special.

        Raises `TooDearError`.
        """
        if self._derives:
            return None
        expressions = (*self._of_classes(problem), *self._own)
        names = _Names()
        _pay(problem.pools, expressions)
        try:
            return tuple(self._pool(problem, pool, expressions, names) for pool in problem.pools)
        except (_SpecialError, AllocationError):
            return None

    def _of_classes(self, problem: Problem) -> Iterator[str]:
        for name in self._classes:
            known = problem.classes.get(name)
            for selector in known.spec.selectors if known is not None else ():
                if selector.cel is not None:
                    yield selector.cel.expression

    def _pool(
        self, problem: Problem, pool: Pool, expressions: tuple[str, ...], names: _Names
    ) -> Hashable:
        if pool.counter_sets or pool.others:
            raise _SpecialError
        return (
            pool.incomplete,
            pool.invalid is not None,
            tuple(self._device(problem, one, expressions, names) for one in pool.devices),
        )

    def _device(
        self, problem: Problem, device: PooledDevice, expressions: tuple[str, ...], names: _Names
    ) -> Hashable:
        use = problem.usage.get(device.id)
        traits = device.traits
        return (
            self._makes.of(device),
            tuple(_passes(device, expression) for expression in expressions),
            names("nvlink", traits.nvlink_group),
            names("root", traits.pcie_root),
            names("numa", traits.numa_node),
            tuple(names.all(name, device.attribute(name)) for name in self._attributes),
            device.taints,
            use and (use.exclusive, len(use.shares), _amounts(use.consumed)),
        )


def _published(device: PooledDevice) -> Hashable:
    capacity = sorted(device.device.capacity.items(), key=lambda item: item[0])
    conditions = (device.device.binding_conditions, device.device.binding_failure_conditions)
    return device.id.driver, device.traits.model, device.shareable, tuple(capacity), conditions


def _amounts(consumed: Mapping[str, Quantity]) -> Hashable:
    return tuple(sorted((name, amount.nano) for name, amount in consumed.items()))


def _pay(pools: Iterable[Pool], expressions: tuple[str, ...]) -> None:
    """Try each selector on each device, as long as that is no burden to others."""
    spent = 0
    for device in (device for pool in pools for device in pool.devices):
        for expression in expressions:
            spent += device.price(expression)
            if spent > SELECTORS_MAY_COST:
                raise TooDearError("the selectors of its requests take too long to be evaluated")


def _passes(device: PooledDevice, expression: str) -> bool:
    answer = device.selected(expression)
    if isinstance(answer, SelectorError):
        raise _SpecialError
    return answer


def _asked(
    claims: tuple[ResourceClaim, ...],
) -> Iterator[ExactDeviceRequest | DeviceSubRequest]:
    for claim in claims:
        for request in claim.spec.devices.requests:
            if request.exactly is not None:
                yield request.exactly
            yield from request.first_available


def _attributes(claims: tuple[ResourceClaim, ...]) -> Iterator[str]:
    for claim in claims:
        for constraint in claim.spec.devices.constraints:
            name = constraint.match_attribute or constraint.distinct_attribute
            if name is not None:
                yield name
