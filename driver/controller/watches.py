"""What the cluster tells us, and who is told: one informer a kind, one handler an event.

Everything lands in `Cluster`; the placement loop hears of what it may wait for.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

import structlog

from driver.controller.cluster import Cluster
from driver.controller.held import HeldDevices
from driver.controller.rivals import Rivals
from driver.kube.informer import Informer
from driver.kube.rest import Rest
from driver.kube.store import Delete, Event, Synced, Upsert, key_of
from driver.model import names
from driver.model.core import Namespace, Node, Pod
from driver.model.deviceclass import DeviceClass, DeviceTaintRule
from driver.model.errors import QuadrantError
from driver.model.ids import ClaimUid
from driver.model.resourceclaim import ResourceClaim
from driver.model.resourceslice import ResourceSlice

_log = structlog.get_logger(__name__)
_API = "/apis/resource.k8s.io/v1"


class Listener(Protocol):
    """Who waits for pods and claims; told after `Cluster` knows. All calls return at once."""

    def pod_changed(self, pod: Pod) -> None:
        """A pod of ours appeared or changed."""

    def pod_gone(self, uid: str) -> None:
        """A pod of ours is gone."""

    def claim_changed(self, claim: ResourceClaim) -> None:
        """A claim appeared or changed."""


class TurnedBackError(QuadrantError):
    """The cluster is at an earlier state than before, as after etcd was restored from a backup."""


class Watches:
    """All that is watched. An object that cannot be read keeps its last readable state.

    `landed` is told of every allocation of ours how many seconds after our answer it was seen.

    `run` raises `TurnedBackError` when versions that were seen turn out to be to come again: what
    is known of claims and their versions is worth nothing then, and a new process must begin.
    """

    def __init__(
        self,
        rest: Rest,
        cluster: Cluster,
        listener: Listener,
        held: HeldDevices,
        *,
        rivals: Rivals,
        taint_rules: str | None,
        clock: Callable[[], float],
        landed: Callable[[float], None],
    ) -> None:
        self._cluster = cluster
        self._rivals = rivals
        self._listener = listener
        self._held = held
        self._clock = clock
        self._landed = landed
        # The highest version that any claim, or a list of them, was seen with.
        self._newest = 0
        self.claims = Informer(
            rest, f"{_API}/resourceclaims", ResourceClaim, on_event=self._on_claim
        )
        self._others: list[Informer[Any]] = [
            Informer(rest, f"{_API}/resourceslices", ResourceSlice, on_event=self._on_slice),
            Informer(rest, f"{_API}/deviceclasses", DeviceClass, on_event=self._on_class),
            Informer(rest, "/api/v1/nodes", Node, on_event=self._on_node),
            Informer(rest, "/api/v1/namespaces", Namespace, on_event=self._on_namespace),
            Informer(
                rest,
                "/api/v1/pods",
                Pod,
                on_event=self._on_pod,
                label_selector=names.POD_LABEL,
            ),
        ]
        if taint_rules is not None:
            self._others.append(
                Informer(rest, taint_rules, DeviceTaintRule, on_event=self._on_taint_rule)
            )

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        """One for each kind."""
        return (self.claims, *self._others)

    async def run(self) -> None:
        """Follow everything for ever."""
        async with asyncio.TaskGroup() as group:
            for informer in self.informers:
                group.create_task(informer.run(), name=f"watch {informer.path}")

    async def synced(self) -> None:
        """Wait until every kind has been listed once."""
        for informer in self.informers:
            await informer.synced()

    @property
    def has_synced(self) -> bool:
        """Whether every kind has been listed once."""
        return all(informer.has_synced for informer in self.informers)

    def _on_claim(self, event: Event[ResourceClaim]) -> None:
        now = self._clock()
        if isinstance(event, Upsert):
            self._rivals.look(
                event.object, before=self._cluster.claims.get(key_of(event.object.metadata))
            )
            answer = self._cluster.put_claim(event.object, now)
            if answer is not None:
                self._landed(now - answer.at)
            self._listener.claim_changed(event.object)
        elif isinstance(event, Delete):
            uid = ClaimUid(event.uid)
            self._cluster.remove_claim(event.key, uid, event.resource_version, now)
        elif isinstance(event, Synced) and event.resource_version < self._newest:
            raise TurnedBackError(
                f"a list of all claims is of version {event.resource_version}, but version "
                f"{self._newest} was seen before: etcd was restored; this process ends, to begin "
                "again from what is there now"
            )
        self._newest = max(self._newest, event.resource_version)

    def _on_pod(self, event: Event[Pod]) -> None:
        if isinstance(event, Upsert):
            self._cluster.put_pod(event.object)
            self._listener.pod_changed(event.object)
        elif isinstance(event, Delete):
            self._cluster.remove_pod(event.uid)
            self._listener.pod_gone(event.uid)

    def _on_slice(self, event: Event[ResourceSlice]) -> None:
        if isinstance(event, Upsert):
            self._cluster.put_slice(event.object)
        elif isinstance(event, Delete):
            self._cluster.remove_slice(event.key.name)

    def _on_class(self, event: Event[DeviceClass]) -> None:
        if isinstance(event, Upsert):
            self._cluster.put_class(event.object)
        elif isinstance(event, Delete):
            self._cluster.remove_class(event.key.name)

    def _on_node(self, event: Event[Node]) -> None:
        if isinstance(event, Upsert):
            self._cluster.put_node(event.object)
        elif isinstance(event, Delete):
            self._cluster.remove_node(event.key.name)

    def _on_namespace(self, event: Event[Namespace]) -> None:
        if isinstance(event, Upsert):
            self._cluster.namespaces[event.object.metadata.name] = event.object.metadata
        elif isinstance(event, Delete):
            self._cluster.namespaces.pop(event.key.name, None)

    def _on_taint_rule(self, event: Event[DeviceTaintRule]) -> None:
        if isinstance(event, Upsert):
            self._cluster.inventory.put_taint_rule(event.object)
            self._held.put(event.object)
        elif isinstance(event, Delete):
            self._cluster.inventory.remove_taint_rule(event.key.name)
            self._held.remove(event.key.name)
