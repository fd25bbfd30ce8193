"""A small cluster as a listing: nodes with cards, claims and pods, and who has what."""

from typing import Any

import msgspec

from driver.cli.live.listing import Listing
from driver.kube.discovery import Served
from driver.model.api import ObjectMeta
from driver.model.core import Namespace, Node, Pod
from driver.model.deviceclass import DeviceClass
from driver.model.resourceclaim import ResourceClaim
from driver.simulator.releases import release
from driver.wire.decode import convert
from tests.controller.commits import CLASS, DRIVER, Json, claim, gpu, picked, proposed, slice_of
from tests.controller.placements import node, pod

LATEST = release("1.37")
CARDS = {
    "t4": [gpu(index, mebi=15360, productName="T4") for index in range(4)],
    "a10g": [gpu(index, mebi=23028, productName="A10G") for index in range(4)],
}


def listing(
    *objects: Node | ResourceClaim | Pod, cards: dict[str, list[Json]] | None = None
) -> Listing:
    """These objects on nodes with these cards; nodes that are not among them are plain."""
    cards = CARDS if cards is None else cards
    known = {one.metadata.name: one for one in objects if isinstance(one, Node)}
    expression = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    device_class = {"metadata": {"name": CLASS}, "spec": {"selectors": [expression]}}
    return Listing(
        served=Served(
            version="v1.37.2",
            features=LATEST.features,
            extended_resources=True,
            taint_rules=None,
        ),
        nodes=tuple(known.get(name, node(name)) for name in cards),
        namespaces=(Namespace(metadata=ObjectMeta(name="ns")),),
        slices=tuple(slice_of(name, devices) for name, devices in cards.items()),
        classes=(convert(DeviceClass, device_class),),
        claims=tuple(one for one in objects if isinstance(one, ResourceClaim)),
        pods=tuple(one for one in objects if isinstance(one, Pod)),
    )


def waiting(name: str, *requests: Json, **more: Any) -> ResourceClaim:
    """A claim that is free."""
    return convert(ResourceClaim, claim(name, *requests, **more))


def held(
    name: str, *requests: Json, device: str, on: str, mebi: int = 0, user: str = "", **more: Any
) -> ResourceClaim:
    """A claim that has one device, for a pod of that name."""
    made = proposed(claim(name, *requests, **more), picked(device, node=on, mebi=mebi), node=on)
    if user:
        made["status"]["reservedFor"] = [{"resource": "pods", "name": user, "uid": user}]
    return convert(ResourceClaim, made)


def running(name: str, *claims: str, on: str, **more: Any) -> Pod:
    """A pod that is bound to a node."""
    made = pod(name, *claims, gated=False, **more)
    return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, node_name=on))
