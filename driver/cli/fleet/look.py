"""A cluster as `matrix`, `claims` and `topo` see it: few kinds, read once, nothing written.

Fewer rights than `driver.cli.live.listing` needs. What only adds a detail is left out where it may
not be read, with a word about it in `missing`.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from driver.allocator.inventory import Inventory
from driver.cli.fleet.nodes import State
from driver.cli.live.listing import ForbiddenError, Reader
from driver.kube.discovery import GROUP, Served, assume
from driver.kube.rest import Rest
from driver.model import names
from driver.model.core import Namespace, Node, Pod
from driver.model.deviceclass import DeviceClass, DeviceTaintRule
from driver.model.resourceclaim import ResourceClaim
from driver.model.resourceslice import ResourceSlice

T = TypeVar("T")
Named = TypeVar("Named", Node, DeviceClass, Namespace)
_API = f"{GROUP}/v1"
EVERYWHERE = ""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked for. The empty namespace stands for all; selectors are Kubernetes' own."""

    driver: str
    nodes: str = ""
    namespace: str = EVERYWHERE
    claims: str = ""
    policies: bool = False


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What was found; `classes` and `namespaces` only where policies were asked for."""

    state: State
    served: Served
    classes: Mapping[str, DeviceClass] = {}
    namespaces: Mapping[str, Namespace] = {}
    missing: tuple[str, ...] = ()


async def look(rest: Rest, wanted: Wanted) -> Look:
    """Read the cluster; raises `ForbiddenError` naming a right that is missing, or `KubeError`."""
    reader = Reader(rest)
    served = await assume(rest)
    inventory = Inventory(served.features)
    missing: list[str] = []
    for published in await reader.all(f"{_API}/resourceslices", ResourceSlice):
        inventory.put_slice(published)
    for rule in await _rules(served, reader, missing):
        inventory.put_taint_rule(rule)
    place = f"/namespaces/{wanted.namespace}" if wanted.namespace else ""
    claims = await reader.all(
        f"{_API}{place}/resourceclaims", ResourceClaim, label_selector=wanted.claims
    )
    pods = await reader.all(f"/api/v1{place}/pods", Pod, label_selector=names.POD_LABEL)
    state = State(
        driver=wanted.driver,
        inventory=inventory,
        nodes=await _nodes(reader, wanted.nodes),
        claims=claims,
        pods=pods,
    )
    found = Look(state=state, served=served)
    if wanted.policies:
        found = msgspec.structs.replace(
            found,
            classes=_by_name(await _maybe(reader, f"{_API}/deviceclasses", DeviceClass, missing)),
            namespaces=_by_name(await _maybe(reader, "/api/v1/namespaces", Namespace, missing)),
        )
    return msgspec.structs.replace(found, missing=(*missing, *reader.unreadable))


async def _nodes(reader: Reader, selector: str) -> dict[str, Node]:
    return _by_name(await reader.all("/api/v1/nodes", Node, label_selector=selector))


async def _rules(served: Served, reader: Reader, missing: list[str]) -> tuple[DeviceTaintRule, ...]:
    path = served.taint_rules
    return () if path is None else await _maybe(reader, path, DeviceTaintRule, missing)


async def _maybe(reader: Reader, path: str, kind: type[T], missing: list[str]) -> tuple[T, ...]:
    """All objects, or none and a word about it where they may not be listed."""
    try:
        return await reader.all(path, kind)
    except ForbiddenError:
        missing.append(f"{path.rsplit('/', 1)[-1]} are not looked at: no right to list them")
        return ()


def _by_name(found: Iterable[Named]) -> dict[str, Named]:
    return {one.metadata.name: one for one in found}
