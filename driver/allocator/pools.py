"""Which pools a node can allocate from, which of their devices, and in which order.

Source of the rules: GatherPools of Kubernetes' allocator (1.37): pools by (driver, pool) with
those that have binding conditions last, slices by name, devices as listed; only the newest
generation, only complete and valid pools. Knows nothing of claims or of what is in use.
"""

from collections.abc import Iterable, Iterator, Sequence

from driver.allocator.device import PooledDevice
from driver.allocator.nodes import reaches
from driver.allocator.scored import Scored
from driver.model.allocation import Features
from driver.model.core import Node
from driver.model.errors import TooDearError
from driver.model.ids import PoolId
from driver.model.resourceslice import CounterSet, ResourceSlice
from driver.selector.errors import SelectorError

# A device that passes the selectors, at its position in the pool, and None; or one for which a
# selector fails, with the index of the selector and its error.
Selected = tuple[int, PooledDevice, tuple[int, SelectorError] | None]

# What all selectors together may cost in one call of the allocator: a quarter of a second.
SELECTORS_MAY_COST = 250_000
# Claims may each bring selectors of their own: answers that nobody asks for again must go.
_MOST_SELECTIONS = 128


class Published:
    """A slice with its devices, made once when the slice is seen."""

    __slots__ = ("_by_name", "devices", "slice")

    def __init__(self, published: ResourceSlice, features: Features) -> None:
        self.slice = published
        self.devices = tuple(_pooled(published, can_share=features.consumable_capacity))
        # The first of devices with the same name; such a pool is invalid anyway.
        self._by_name = {one.device.name: one for one in reversed(self.devices)}

    def find(self, name: str) -> PooledDevice | None:
        """The device of this name, if the slice has one."""
        return self._by_name.get(name)


def _pooled(published: ResourceSlice, *, can_share: bool) -> Iterator[PooledDevice]:
    kinds: list[PooledDevice] = []
    for device in published.spec.devices:
        like = next((one for one in kinds if one.device.capacity == device.capacity), None)
        portions = like.portions if like is not None else {}
        made = PooledDevice(published, device, can_share=can_share, portions=portions)
        if like is None:
            kinds.append(made)
        yield made


class Pool:
    """One pool as a node sees it.

    `devices` can be chosen on the node, in the scheduler's order; `others` cannot, but draw from
    the same counters. `asked` are those that selectors are tried on: where a device of a slice is,
    the scheduler looks at only after that, so that one on another node can stop it. A pool that is
    `incomplete` or has an `invalid` reason has none of them.
    """

    __slots__ = (
        "_scored",
        "_selected",
        "asked",
        "counter_sets",
        "devices",
        "has_binding_conditions",
        "id",
        "incomplete",
        "invalid",
        "others",
    )

    def __init__(
        self,
        pool_id: PoolId,
        devices: tuple[PooledDevice, ...] = (),
        *,
        asked: tuple[PooledDevice, ...] | None = None,
        others: tuple[PooledDevice, ...] = (),
        counter_sets: dict[str, CounterSet] | None = None,
        has_binding_conditions: bool = False,
        incomplete: bool = False,
        invalid: str | None = None,
    ) -> None:
        self.id = pool_id
        self.devices = devices
        self.asked = devices if asked is None else asked
        self.others = others
        self.counter_sets = counter_sets or {}
        self.has_binding_conditions = has_binding_conditions
        self.incomplete = incomplete
        self.invalid = invalid
        self._scored: Scored | None = None
        self._selected: dict[tuple[str, ...], tuple[tuple[Selected, ...], int]] = {}

    @property
    def usable(self) -> bool:
        """Whether devices may be taken from it."""
        return not self.incomplete and self.invalid is None

    def scored(self) -> Scored:
        """Its devices as scorers see them, whatever is in use."""
        if self._scored is None:
            self._scored = Scored(self.devices)
        return self._scored

    def selected(self, expressions: tuple[str, ...]) -> tuple[Selected, ...]:
        """The devices that pass all selectors, in order, and those for which one fails.

        Worked out once per pool: only a change of its slices makes a new pool. Raises
        `TooDearError` when that takes too long; then it says nothing of what Kubernetes would.
        """
        return self._selection(expressions)[0]

    def price(self, expressions: tuple[str, ...]) -> int:
        """What `selected` costs where it is not known yet, in CEL's units."""
        return self._selection(expressions)[1]

    def _selection(self, expressions: tuple[str, ...]) -> tuple[tuple[Selected, ...], int]:
        known = self._selected.get(expressions)
        if known is None:
            if len(self._selected) >= _MOST_SELECTIONS:
                self._selected.clear()
            known = self._selected[expressions] = self._select(expressions)
        return known

    def _select(self, expressions: tuple[str, ...]) -> tuple[tuple[Selected, ...], int]:
        here, found, spent = set(self.devices), list[Selected](), 0
        for position, device in enumerate(self.asked):
            for index, expression in enumerate(expressions):
                answer, price = device.judged(expression)
                spent += price
                if isinstance(answer, TooDearError):
                    raise TooDearError(str(answer))
                if spent > SELECTORS_MAY_COST:
                    raise TooDearError(f"its selectors take too long on the devices of {self.id}")
                if isinstance(answer, SelectorError):
                    found.append((position, device, (index, answer)))
                if answer is not True:
                    break
            else:
                if device in here:
                    found.append((position, device, None))
        return tuple(found), spent


def in_order(pools: Iterable[Pool]) -> tuple[Pool, ...]:
    """The pools in the order in which the scheduler tries them."""
    return tuple(sorted(pools, key=lambda pool: (pool.has_binding_conditions, pool.id)))


def pool_on(
    node: Node, pool_id: PoolId, members: Iterable[Published], features: Features
) -> Pool | None:
    """The pool made of these slices as the node sees it; None when the node has no part in it."""
    members = list(members)
    known = [one for one in members if _understood(one.slice, features)]
    near = [one for one in known if _concerns(one.slice, node, features)]
    if not near:
        return None
    generation = max(one.slice.spec.pool.generation for one in near)
    near = [one for one in near if one.slice.spec.pool.generation == generation]
    # Slices of one generation should agree; where they do not, the pool is still being written.
    wanted = max(one.slice.spec.pool.resource_slice_count for one in near)
    same = near
    if len(near) != wanted:
        # Slices for other nodes may complete the pool, or show that this generation is gone.
        if any(one.slice.spec.pool.generation > generation for one in members):
            return None
        same = [one for one in known if one.slice.spec.pool.generation == generation]
        if len(same) != wanted:
            return Pool(pool_id, incomplete=True)
    close = set(near)
    far = [one for one in same if one not in close]
    return _build(pool_id, node, features, near=sorted(near, key=_name), far=far)


def _name(one: Published) -> str:
    return one.slice.metadata.name


def _understood(published: ResourceSlice, features: Features) -> bool:
    return features.compatibility_groups or not any(
        use.compatibility_groups
        for device in published.spec.devices
        for use in device.consumes_counters
    )


def _concerns(published: ResourceSlice, node: Node, features: Features) -> bool:
    spec = published.spec
    if not features.partitionable_devices and (
        spec.per_device_node_selection is not None or spec.shared_counters
    ):
        return False
    if spec.per_device_node_selection:
        return any(
            reaches(node, node_name=d.node_name, all_nodes=d.all_nodes, selector=d.node_selector)
            for d in spec.devices
        )
    return reaches(
        node, node_name=spec.node_name, all_nodes=spec.all_nodes, selector=spec.node_selector
    )


def _build(
    pool_id: PoolId,
    node: Node,
    features: Features,
    *,
    near: Sequence[Published],
    far: Sequence[Published],
) -> Pool:
    local = [device for one in near for device in one.devices]
    invalid = _duplicate((d.device.name for d in local), "device")
    counter_sets: dict[str, CounterSet] = {}
    others = [device for one in far for device in one.devices]
    if features.partitionable_devices and invalid is None:
        # A slice with counters belongs to the pool whatever node it names.
        shared = [group for one in (*near, *far) for group in one.slice.spec.shared_counters]
        counter_sets = {group.name: group for group in shared}
        invalid = _duplicate((group.name for group in shared), "counter set")
        invalid = invalid or _unknown_counters(counter_sets, [*local, *others])
    if invalid is not None:
        return Pool(pool_id, invalid=invalid)
    bindable = features.device_binding_and_status
    asked = [one for one in local if bindable or not one.device.binding_conditions]
    here = {one: None for one in asked if _is_on(node, one)}
    return Pool(
        pool_id,
        tuple(here),
        asked=tuple(asked),
        others=tuple(device for device in (*local, *others) if device not in here),
        counter_sets=counter_sets,
        has_binding_conditions=any(device.device.binding_conditions for device in local),
    )


def _is_on(node: Node, pooled: PooledDevice) -> bool:
    device = pooled.device
    return not pooled.slice.spec.per_device_node_selection or reaches(
        node,
        node_name=device.node_name,
        all_nodes=device.all_nodes,
        selector=device.node_selector,
    )


def _duplicate(names: Iterable[str], kind: str) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return f"duplicate {kind} name {name}"
        seen.add(name)
    return None


def _unknown_counters(
    counter_sets: dict[str, CounterSet], devices: Iterable[PooledDevice]
) -> str | None:
    for device in devices:
        for use in device.device.consumes_counters:
            known = counter_sets.get(use.counter_set)
            if known is None:
                return f"device {device.id} draws from unknown counter set {use.counter_set}"
            missing = next((name for name in use.counters if name not in known.counters), None)
            if missing is not None:
                return (
                    f"device {device.id} draws from unknown counter {missing} of counter set "
                    f"{use.counter_set}"
                )
    return None
