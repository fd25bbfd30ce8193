"""What is in a cluster: every kind that a decision rests on, listed once.

The same kinds that the controller watches. Nothing is written, apart from dry runs that ask the API
server for its features (`driver.kube.discovery`).
"""

from collections.abc import Iterator
from typing import TypeVar

import msgspec

from driver.kube.discovery import Served, discover
from driver.kube.errors import Forbidden, NotFound
from driver.kube.rest import Rest
from driver.model import names
from driver.model.core import Namespace, Node, Pod
from driver.model.deviceclass import DeviceClass, DeviceTaintRule
from driver.model.errors import InvalidObjectError, QuadrantError
from driver.model.ids import ObjectKey
from driver.model.resourceclaim import ResourceClaim, ResourceClaimTemplate
from driver.model.resourceslice import ResourceSlice
from driver.wire.decode import decode

T = TypeVar("T")
_API = "/apis/resource.k8s.io/v1"


class ForbiddenError(QuadrantError):
    """The user may not list a kind; the text names the right that is missing."""


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster. `pods` are those of ours, and any others that were asked for by name.

    `unreadable` names objects that do not decode, one sentence each.
    """

    served: Served
    nodes: tuple[Node, ...]
    namespaces: tuple[Namespace, ...]
    slices: tuple[ResourceSlice, ...]
    classes: tuple[DeviceClass, ...]
    claims: tuple[ResourceClaim, ...]
    pods: tuple[Pod, ...]
    taint_rules: tuple[DeviceTaintRule, ...] = ()
    templates: tuple[ResourceClaimTemplate, ...] = ()
    unreadable: tuple[str, ...] = ()


class Reader:
    """Lists kinds, and remembers what could not be read."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest
        self.unreadable: list[str] = []

    async def listing(self, *, driver: str, templates: bool = False) -> Listing:
        """Everything; raises `ForbiddenError`, or `KubeError` when the server cannot be asked."""
        served = await discover(self._rest, driver=driver)
        rules = served.taint_rules
        found = Listing(
            served=served,
            nodes=await self.all("/api/v1/nodes", Node),
            namespaces=await self.all("/api/v1/namespaces", Namespace),
            slices=await self.all(f"{_API}/resourceslices", ResourceSlice),
            classes=await self.all(f"{_API}/deviceclasses", DeviceClass),
            claims=await self.all(f"{_API}/resourceclaims", ResourceClaim),
            pods=await self.all("/api/v1/pods", Pod, label_selector=names.POD_LABEL),
            taint_rules=await self.all(rules, DeviceTaintRule) if rules is not None else (),
            templates=await self.all(f"{_API}/resourceclaimtemplates", ResourceClaimTemplate)
            if templates
            else (),
        )
        return msgspec.structs.replace(found, unreadable=tuple(self.unreadable))

    async def all(self, path: str, kind: type[T], *, label_selector: str = "") -> tuple[T, ...]:
        """All objects at a path, in the server's order."""
        params = {"labelSelector": label_selector} if label_selector else {}
        found: list[T] = []
        try:
            async for page in self._rest.pages(path, params=params):
                found += self._read(kind, page.items or ())
        except Forbidden as error:
            where, what = path.rsplit("/", 2)[-2:]
            scope = f"in namespace {where}" if "/namespaces/" in path else "in all namespaces"
            raise ForbiddenError(
                f"{what} cannot be listed: {error}; this command needs the right to list them "
                f"{scope}"
            ) from error
        return tuple(found)

    async def pod(self, key: ObjectKey) -> Pod | None:
        """One pod, ours or not; None when there is none."""
        try:
            data = await self._rest.get(f"/api/v1/namespaces/{key.namespace}/pods/{key.name}")
        except NotFound:
            return None
        return decode(Pod, data)

    def _read(self, kind: type[T], items: list[msgspec.Raw] | tuple[()]) -> Iterator[T]:
        for raw in items:
            try:
                yield decode(kind, raw)
            except InvalidObjectError as error:
                self.unreadable.append(f"an object is left out: {error}")
