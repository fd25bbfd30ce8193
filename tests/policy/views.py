"""Nodes and choices as scorers see them, in a few words."""

from collections.abc import Mapping

from driver.model.ids import DeviceId
from driver.model.names import DRIVER, MEMORY
from driver.policy.view import Choice, DeviceView, NodeView, Taken

TOTAL = 100


def gpu(
    index: int,
    *,
    group: str | None = None,
    switch: str | None = None,
    root: str | None = None,
    **more: object,
) -> DeviceView:
    """A card of 100 units of memory."""
    return DeviceView(
        id=DeviceId(DRIVER, "node", f"gpu-{index}"),
        index=index,
        nvlink_group=group,
        pcie_switch=switch,
        pcie_root=root,
        capacity={MEMORY: TOTAL},
        **more,  # type: ignore[arg-type]
    )


def partly(index: int, used: int, *, shares: int = 1, **more: str) -> DeviceView:
    """A shareable card of which something is in use."""
    in_use: Mapping[str, int] = {MEMORY: used} if used else {}
    return gpu(index, used=in_use, shares=shares if used else 0, shareable=True, **more)


def whole(index: int, *, held: bool = False, **more: str) -> DeviceView:
    """A card that is given out whole."""
    return gpu(index, exclusive=held, **more)


def node(*devices: DeviceView, name: str = "node") -> NodeView:
    """A node with these devices."""
    return NodeView(name=name, devices=devices)


def take(*indices: int) -> Choice:
    """These cards, whole."""
    return Choice(tuple(Taken(index) for index in indices))


def share(*indices: int, memory: int = 20) -> Choice:
    """A share of so much memory of each."""
    return Choice(tuple(Taken(index, {MEMORY: memory}, exclusive=False) for index in indices))
