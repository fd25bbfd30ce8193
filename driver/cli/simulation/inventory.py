"""Which nodes and cards there are: from inventories, or as a real cluster has them.

The devices of an inventory are built by the node plugin's own code from the same profiles of real
cards.
"""

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Literal

import msgspec

from driver.cli.simulation.documents import Document, ManifestError
from driver.cli.simulation.manifests import Manifests, reading, typed
from driver.model.api import ObjectMeta
from driver.model.core import Node, NodeSpec, NodeStatus, Taint
from driver.model.errors import InvalidObjectError
from driver.model.quantity import Quantity, parse, whole
from driver.model.resourceslice import ResourceSlice
from driver.node import simulated
from driver.node.errors import SettingsError
from driver.node.sharing.offered import offered
from driver.node.sharing.partitions import MigMode
from driver.node.slices import Create, plan, pool
from driver.wire import decode
from driver.wire.unknown import unknown_in

_HOSTNAME = "kubernetes.io/hostname"
# What a kubelet takes by default.
_PODS = 110
# What an inventory does not mention shall not be what a pod waits for.
_PLENTY = whole(2**50)
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_DNS_LABEL = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"


class _Taint(msgspec.Struct, frozen=True):
    key: str
    effect: str
    value: str = ""


class _Node(msgspec.Struct, frozen=True, kw_only=True):
    """One node as a person writes it."""

    name: Annotated[str, msgspec.Meta(pattern=_DNS_LABEL)]
    # COUNTxMODEL, such as 4xT4; a node without cards has none.
    gpus: str = ""
    # Whether several claims may hold shares of one card.
    shareable: bool = True
    # Whether cards that can be cut up are offered in parts as well (MIG).
    mig: Literal["off", "dynamic"] = "off"
    labels: dict[str, str] = {}
    taints: tuple[_Taint, ...] = ()
    # Allocatable amounts, as quantities. Left out: there is enough.
    cpu: str | int | float = ""
    memory: str | int = ""


class _Inventory(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: str
    kind: str
    metadata: dict[str, object] = {}
    nodes: tuple[_Node, ...]


class Machines(msgspec.Struct, frozen=True):
    """All nodes, and what their node plugins publish."""

    nodes: tuple[Node, ...]
    slices: tuple[ResourceSlice, ...]


def machines(manifests: Manifests, driver: str) -> Machines:
    """All nodes, those of inventories first, in the order of the input; raises `ManifestError`."""
    if not manifests.inventories and not manifests.nodes:
        raise ManifestError(
            "no inventory is given: expected a file with apiVersion quadrant.dev/v1alpha1, kind "
            "Inventory and the nodes with their cards, or a snapshot; docs/simulate.md has an "
            "example"
        )
    nodes: dict[str, Node] = {}
    slices = [typed(document, ResourceSlice) for document in manifests.slices]
    for document in manifests.inventories:
        _refuse_unknown(document)
        found = reading(document, partial(msgspec.convert, document.raw, _Inventory))
        for index, item in enumerate(found.nodes):
            if item.name in nodes:
                raise document.error(f"nodes[{index}].name", f"{item.name!r} is used twice")
            nodes[item.name] = _node(document, index, item)
            if item.gpus:
                slices += _slices(document, index, item, driver)
    for document in manifests.nodes:
        node = typed(document, Node)
        if node.metadata.name in nodes:
            raise document.error("metadata.name", "is the name of a node of an inventory too")
        nodes[node.metadata.name] = node
    return Machines(tuple(nodes.values()), tuple(slices))


def _refuse_unknown(document: Document) -> None:
    """A misspelt field must not be taken for one that is left out."""
    for path in unknown_in(_Inventory, document.raw):
        shape = _Taint if "taints" in path else _Node if "nodes" in path else _Inventory
        known = ", ".join(field.encode_name for field in msgspec.structs.fields(shape))
        raise document.error(path.lstrip("."), f"is not known; expected one of {known}")


def _node(document: Document, index: int, item: _Node) -> Node:
    place = f"nodes[{index}]"
    # Always told in full: what is not here, such as another vendor's cards, the node does not have.
    allocatable = {
        "cpu": _amount(document, f"{place}.cpu", item.cpu),
        "memory": _amount(document, f"{place}.memory", item.memory),
        "ephemeral-storage": _PLENTY,
        "pods": whole(_PODS) if item.cpu or item.memory else _PLENTY,
    }
    return Node(
        metadata=ObjectMeta(name=item.name, labels={_HOSTNAME: item.name, **item.labels}),
        spec=NodeSpec(taints=tuple(_taints(document, index, item))),
        status=NodeStatus(allocatable=allocatable),
    )


def _taints(document: Document, index: int, item: _Node) -> Iterator[Taint]:
    """A misspelt effect would be a taint that keeps nobody away."""
    for place, taint in enumerate(item.taints):
        if taint.effect not in _EFFECTS:
            raise document.error(
                f"nodes[{index}].taints[{place}].effect",
                f"is {taint.effect!r}; expected one of {', '.join(_EFFECTS)}",
            )
        yield Taint(key=taint.key, value=taint.value, effect=taint.effect)


def _amount(document: Document, field: str, text: str | float) -> Quantity:
    if text == "":
        return _PLENTY
    try:
        return parse(str(text))
    except InvalidObjectError as error:
        raise document.error(field, str(error)) from error


def _slices(document: Document, index: int, item: _Node, driver: str) -> Iterator[ResourceSlice]:
    """What the node plugin would create where nothing is published yet."""
    try:
        cards = simulated.cards(item.gpus, item.name)
    except SettingsError as error:
        raise document.error(f"nodes[{index}].gpus", str(error)) from error
    offer = offered(cards, mig=MigMode(item.mig), shareable=item.shareable)
    devices = offer.devices(counters=True)
    for action in plan(pool(devices, driver=driver, node=item.name), (), stored={}):
        if isinstance(action, Create):
            yield decode.convert(ResourceSlice, action.body)
