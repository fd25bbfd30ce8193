"""How much of each card is in use: what tables and pictures of nodes and GPUs are made from."""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import structs

from driver.model import names
from driver.model.allocation import DeviceUse
from driver.model.ids import DeviceId
from driver.model.resourceslice import Device

_UNUSED = DeviceUse()


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """One card and what is in use of it; memory in bytes, cores in percent.

    `shares` counts the shares and parts (MIG) of it that claims have, `parts` the parts among them;
    an exclusive card has one holder and no shares, and all of it is in use.
    """

    node: str
    device: DeviceId
    index: int
    uuid: str = ""
    product: str = ""
    nvlink_group: str = ""
    memory: int = 0
    memory_used: int = 0
    cores_used: int = 0
    shares: int = 0
    parts: int = 0
    exclusive: bool = False


def card(node: str, device_id: DeviceId, device: Device, use: DeviceUse | None) -> Card:
    """The picture of one published device with what is in use of it."""
    use = use or _UNUSED
    memory = _amount(device, names.MEMORY)
    cores = _amount(device, names.CORES)
    return Card(
        node=node,
        device=device_id,
        index=index_of(device),
        uuid=_text(device, names.UUID),
        product=_text(device, names.PRODUCT_NAME),
        nvlink_group=_text(device, names.NVLINK_GROUP),
        memory=memory,
        memory_used=memory if use.exclusive else _used(use, names.MEMORY),
        cores_used=cores if use.exclusive else _used(use, names.CORES),
        shares=len(use.shares),
        exclusive=use.exclusive,
    )


def cards(
    nodes: Iterable[tuple[str, Iterable[tuple[DeviceId, Device]]]],
    usage: Mapping[DeviceId, DeviceUse],
) -> tuple[Card, ...]:
    """All cards of these nodes, node by node, in the order of their index.

    What is in use of a card's parts (MIG) is in use of the card; a part whose card is not published
    stands for itself.
    """
    return tuple(one for node, devices in nodes for one in _on_node(node, devices, usage))


def is_part(device: Device) -> bool:
    """Whether a device is part of a card."""
    return bool(_text(device, names.PARENT_UUID))


def _on_node(
    node: str, devices: Iterable[tuple[DeviceId, Device]], usage: Mapping[DeviceId, DeviceUse]
) -> list[Card]:
    found: dict[str, Card] = {}
    parts: list[tuple[str, Card]] = []
    for name, device in devices:
        one = card(node, name, device, usage.get(name))
        if is_part(device):
            parts.append((_text(device, names.PARENT_UUID), one))
        else:
            found[one.uuid or name.device] = one
    for parent, one in parts:
        if parent not in found:
            found[one.device.device] = one
        elif one.exclusive:
            found[parent] = _with_part(found[parent], one)
    return sorted(found.values(), key=lambda one: (one.index, one.device))


def _with_part(whole: Card, part: Card) -> Card:
    return structs.replace(
        whole,
        memory_used=whole.memory_used + part.memory_used,
        shares=whole.shares + 1,
        parts=whole.parts + 1,
    )


def index_of(device: Device) -> int:
    """The card's place in its machine; -1 where the driver does not publish it."""
    attribute = device.attributes.get(names.INDEX)
    return -1 if attribute is None or attribute.int_ is None else attribute.int_


def _text(device: Device, name: str) -> str:
    attribute = device.attributes.get(name)
    return "" if attribute is None else attribute.string or ""


def _amount(device: Device, name: str) -> int:
    capacity = device.capacity.get(name)
    return 0 if capacity is None else capacity.value.ceil()


def _used(use: DeviceUse, name: str) -> int:
    consumed = use.consumed.get(name)
    return 0 if consumed is None else consumed.ceil()
