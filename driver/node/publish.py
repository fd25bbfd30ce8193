"""Keeps the node's ResourceSlices in the API server as they should be, whoever changes them.

The kubelet removes them when it starts and some time after the plugin's socket was gone, people
delete and edit them; each time they are put back. They stay when the plugin ends: only a node that
leaves the cluster has none, because its Node object owns them.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NoReturn

import msgspec
import structlog

from driver.kube.backoff import Backoff
from driver.kube.errors import NotFound
from driver.kube.informer import Informer, Pace
from driver.kube.rest import Preconditions, Rest
from driver.kube.store import Event
from driver.model.api import OwnerReference
from driver.model.core import Node
from driver.model.errors import QuadrantError
from driver.model.resourceslice import Device, ResourceSlice
from driver.node.errors import NodeError
from driver.node.meter import NOBODY, Meter
from driver.node.slices import (
    API_VERSION,
    Action,
    Create,
    Delete,
    Stored,
    Update,
    WantedSlice,
    dropped_fields,
    owned_by,
    plan,
    pool,
)
from driver.wire.decode import decode
from driver.wire.patch import MERGE_PATCH

SLICES = f"/apis/{API_VERSION}/resourceslices"

# Several slices usually vanish at once.
_SETTLE_S = 0.05
# How often to look whether it has become this instance's turn.
_TURN_S = 1.0
# A card that is ill must not stay on offer for long after the API server is back.
_RETRY_FIRST_S = 0.2
_RETRY_LAST_S = 5.0

log = structlog.get_logger(__name__)


class Publisher:
    """Publishes the devices that it was given last; `run` it as a task."""

    def __init__(
        self,
        rest: Rest,
        *,
        driver: str,
        node: str,
        may_publish: Callable[[], bool],
        meter: Meter = NOBODY,
    ) -> None:
        self._rest = rest
        self._driver = driver
        self._node = node
        self._may_publish = may_publish
        self._meter = meter
        self._wanted = pool((), driver=driver, node=node)
        self._stored: dict[str, Stored] = {}
        self._generation = 0
        self._complaint: tuple[str, ...] = ()
        self._changed = asyncio.Event()
        self._informer = Informer(
            rest,
            SLICES,
            ResourceSlice,
            on_event=self._on_event,
            field_selector=f"spec.nodeName={node},spec.driver={driver}",
            pace=Pace(longest_wait=_RETRY_LAST_S),
        )

    def devices(self, devices: Sequence[Device]) -> None:
        """Say what there is to publish now."""
        self._wanted = pool(devices, driver=self._driver, node=self._node)
        self._changed.set()

    async def run(self) -> None:
        """Publish until cancelled. Failures are logged and tried again."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informer.run())
            group.create_task(self._keep())

    def _on_event(self, _event: Event[ResourceSlice]) -> None:
        self._changed.set()

    async def _keep(self) -> NoReturn:
        await self._informer.synced()
        backoff = Backoff(base=_RETRY_FIRST_S, cap=_RETRY_LAST_S)
        had_turn = False
        while True:
            has_turn = self._may_publish()
            if has_turn and not had_turn:
                # The other instance may have left something of its own.
                self._changed.set()
            had_turn = has_turn
            if not has_turn:
                await asyncio.sleep(_TURN_S)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(_TURN_S):
                    await self._changed.wait()
            if self._changed.is_set():
                await self._try(backoff)

    async def _try(self, backoff: Backoff) -> None:
        await asyncio.sleep(_SETTLE_S)
        self._changed.clear()
        try:
            await self._publish()
            backoff.reset()
        except QuadrantError as error:
            log.warning("slices not published; trying again", error=str(error))
            self._meter.slices(done=False)
            self._changed.set()
            await asyncio.sleep(backoff.next())

    async def _publish(self) -> None:
        seen = tuple(self._informer.objects.values())
        actions = plan(self._wanted, seen, stored=self._stored, last_generation=self._generation)
        if not actions:
            return
        try:
            for action in actions:
                await self._act(action)
        except QuadrantError:
            # Somebody may have made something else of the slices, and a write whose answer was
            # lost may be there.
            await self._informer.relist()
            raise
        log.info("slices published", node=self._node, writes=len(actions))
        self._meter.slices(done=True)
        # The next plan must know our own writes, or it would repeat them.
        await self._informer.relist()

    async def _act(self, action: Action) -> None:
        match action:
            case Delete(name=name, uid=uid):
                await self._rest.delete(f"{SLICES}/{name}", preconditions=Preconditions(uid=uid))
            case Update(slice=wanted, body=body):
                answer = await self._rest.patch(
                    f"{SLICES}/{wanted.name}", msgspec.json.encode(body), MERGE_PATCH
                )
                self._note(wanted, answer)
            case Create(slice=wanted, body=body):
                owned = owned_by(body, await self._owner())
                self._note(wanted, await self._rest.create(SLICES, msgspec.json.encode(owned)))

    async def _owner(self) -> OwnerReference:
        # Read each time: a Node that was deleted and came back is another owner.
        try:
            node = decode(Node, await self._rest.get(f"/api/v1/nodes/{self._node}"))
        except NotFound as error:
            raise NodeError(
                f"node {self._node} is not in the cluster (yet), so its devices have no owner; "
                "nodeName must be the name that the kubelet registers with"
            ) from error
        return OwnerReference(api_version="v1", kind="Node", name=self._node, uid=node.metadata.uid)

    def _note(self, wanted: WantedSlice, answer: bytes) -> None:
        """Remember what became of the devices, and say once what did not arrive."""
        result = decode(ResourceSlice, answer)
        self._generation = max(self._generation, result.spec.pool.generation)
        self._stored[wanted.name] = Stored(wanted.devices, result.spec.devices)
        dropped = dropped_fields(wanted.devices, result.spec.devices)
        if dropped and dropped != self._complaint:
            self._complaint = dropped
            log.warning(
                "the API server drops part of the devices: their features are off there",
                fields=dropped,
            )
