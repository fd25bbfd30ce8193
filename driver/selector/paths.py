"""Ways into the device: the chains of fields and constant keys that selectors consist of."""

from typing import TypeAlias

from driver.selector.errors import CelError
from driver.selector.frame import Frame, Run
from driver.selector.syntax import Call, Ident, Literal, Node, Select

# (), ("driver",), ("attributes", "gpu.example.com", "model") and everything between.
Path: TypeAlias = tuple[str, ...]

_MAPS = ("attributes", "capacity")
_FULL = 3


def device_path(node: Node, *, hidden: bool = False) -> Path | None:
    """The way that this node is, or None when it is something else or goes on into a value.

    With the device hidden by a variable only `.device` still means it.
    """
    if isinstance(node, Ident):
        return () if node.name == ".device" or (node.name == "device" and not hidden) else None
    further = step(node)
    if further is None:
        return None
    operand, name = further
    path = device_path(operand, hidden=hidden)
    if path is None or len(path) == _FULL or (path and path[0] not in _MAPS):
        return None
    return (*path, name)


def step(node: Node) -> tuple[Node, str] | None:
    """What the node goes into, and the constant field or key by which; None for any other node."""
    if isinstance(node, Select):
        return None if node.test or node.optional else (node.operand, node.field)
    if isinstance(node, Call) and node.function == "_[_]" and len(node.args) > 1:
        operand, key = node.args[0], node.args[1]
        if isinstance(key, Literal) and isinstance(key.value, str):
            return operand, key.value
    return None


def path_run(path: Path) -> Run:
    """What gives the part of a device that the way leads to."""
    if not path:
        return lambda frame: frame.device.view
    if len(path) == 1:
        field = path[0]
        return lambda frame: frame.device.view[field]
    attributes, domain = path[0] == "attributes", path[1]
    if len(path) < _FULL:
        if attributes:
            return lambda frame: frame.device.attributes[domain]
        return lambda frame: frame.device.capacity[domain]
    return _named(attributes=attributes, domain=domain, name=path[2])


def _named(*, attributes: bool, domain: str, name: str) -> Run:
    def attribute(frame: Frame) -> object:
        try:
            return frame.device.attributes[domain][name]
        except KeyError:
            raise CelError(f"no such key: {name}") from None

    def capacity(frame: Frame) -> object:
        try:
            return frame.device.capacity[domain][name]
        except KeyError:
            raise CelError(f"no such key: {name}") from None

    return attribute if attributes else capacity
