"""The physical cards of one node, put together from the devices that are published.

A card is published as one device, as instances of it (MIG), or as both. What is in use comes from
the holders; what a device is, from its attributes.
"""

from collections.abc import Iterable, Iterator, Mapping

from driver.allocator.device import PooledDevice
from driver.cli.fleet.holders import Holding
from driver.cli.fleet.links import site
from driver.cli.fleet.report import MIB, Card, CardUse
from driver.model import names
from driver.model.ids import DeviceId
from driver.model.quantity import Quantity
from driver.simulator.cards import index_of

_TYPE, _MIG, _PARENT, _PROFILE = "type", "mig", "parentUUID", "profile"
_IS_NO_LIMIT = "None"


class _Parts:
    """The devices of one card: it as a whole, where that is published, and its instances."""

    def __init__(self) -> None:
        self.whole: PooledDevice | None = None
        self.instances: list[PooledDevice] = []

    @property
    def face(self) -> PooledDevice:
        """The device that stands for the card."""
        return self.whole or self.instances[0]


def cards(
    devices: Iterable[PooledDevice], held: Mapping[DeviceId, list[Holding]]
) -> tuple[Card, ...]:
    """All cards, in the order of their index."""
    found = (_card(parts, held) for parts in _by_card(devices).values())
    return tuple(sorted(found, key=lambda card: (card.index, card.device)))


def _by_card(devices: Iterable[PooledDevice]) -> dict[str, _Parts]:
    found: dict[str, _Parts] = {}
    for device in devices:
        if is_instance(device):
            parent = text(device, _PARENT) or str(device.id)
            found.setdefault(parent, _Parts()).instances.append(device)
        else:
            found.setdefault(text(device, names.UUID) or str(device.id), _Parts()).whole = device
    return found


def is_instance(device: PooledDevice) -> bool:
    """Whether it is a part of a card (MIG) that is published as a device of its own."""
    return text(device, _TYPE) == _MIG


def profile(device: PooledDevice) -> str:
    """The profile of an instance, such as 1g.10gb; empty for a card."""
    return text(device, _PROFILE) if is_instance(device) else ""


def _card(parts: _Parts, held: Mapping[DeviceId, list[Holding]]) -> Card:
    face = parts.face
    mine = held.get(face.id, []) if parts.whole is not None else []
    instances = [one for one in parts.instances if held.get(one.id)]
    shares = [hold for hold in mine if hold.share]
    memory = _memory(face) if parts.whole is not None else sum(map(_memory, parts.instances))
    exclusive = len(shares) < len(mine)
    where = site(face.device)
    return Card(
        device=face.id.device,
        index=index_of(face.device),
        uuid=text(face, names.UUID) if parts.whole is not None else text(face, _PARENT),
        model=text(face, names.PRODUCT_NAME),
        nvlink_group=where.nvlink_group or "",
        numa_node=where.numa_node,
        memory_mib=memory // MIB,
        memory_used_mib=(memory if exclusive else _used(shares, instances)) // MIB,
        use=_use(parts, exclusive=exclusive, shares=len(shares), instances=len(instances)),
        shares=len(shares),
        mig_in_use=tuple(profile(one) or one.id.device for one in instances),
        taints=tuple(_taints(parts)),
        claims=tuple(_claims([*mine, *(h for one in instances for h in held[one.id])])),
    )


def _use(parts: _Parts, *, exclusive: bool, shares: int, instances: int) -> CardUse:
    if exclusive:
        return "whole"
    if shares:
        return "shared"
    return "mig" if instances or parts.whole is None else "free"


def _used(shares: Iterable[Holding], instances: Iterable[PooledDevice]) -> int:
    shared = (_amount(hold.consumed.get(names.MEMORY)) for hold in shares)
    return sum(shared) + sum(map(_memory, instances))


def _memory(device: PooledDevice) -> int:
    capacity = device.device.capacity.get(names.MEMORY)
    return 0 if capacity is None else _amount(capacity.value)


def _amount(quantity: Quantity | None) -> int:
    return 0 if quantity is None else quantity.ceil()


def _taints(parts: _Parts) -> Iterator[str]:
    """Each once, as KEY=VALUE:EFFECT; one without an effect only informs."""
    devices = [parts.whole] if parts.whole is not None else parts.instances
    yield from dict.fromkeys(
        f"{taint.key}{'=' if taint.value else ''}{taint.value}:{taint.effect}"
        for device in devices
        for taint in device.taints
        if taint.effect != _IS_NO_LIMIT
    )


def _claims(held: Iterable[Holding]) -> Iterator[str]:
    yield from dict.fromkeys(str(hold.claim) for hold in held)


def text(device: PooledDevice, name: str) -> str:
    """A text attribute of the driver's own domain; empty where it is not published."""
    attribute = device.device.attributes.get(name)
    return "" if attribute is None else attribute.string or ""
