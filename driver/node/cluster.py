"""The cluster's side of the plugin: what it reads from the API server, and what it tells there.

Imported when the kubelet's sockets are served already (see `driver.node.link`).
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import structlog

from driver.kube.backoff import Backoff
from driver.kube.errors import Forbidden, KubeError, NotFound
from driver.kube.events import Recorder, Subject
from driver.kube.rest import Rest
from driver.kube.session import open_session
from driver.model import events
from driver.model.names import DOMAIN
from driver.model.resourceclaim import ResourceClaim
from driver.node.board import Board
from driver.node.claims import ClaimRef
from driver.node.cordon import Cordon
from driver.node.held import PreparedClaim
from driver.node.meter import NOBODY, Meter
from driver.node.publish import Publisher
from driver.node.settings import NodeSettings
from driver.node.slices import API_VERSION
from driver.node.statuswriter import StatusWriter
from driver.wire.decode import decode

# Reading a claim must leave time for the rest within the kubelet's 45 seconds.
_READ_TIMEOUT_S = 10.0
# Without an answer, cards that are not closed must be published all the same.
_CORDON_PATIENCE_S = 5.0
_RETRY_FIRST_S = 0.2
_RETRY_LAST_S = 30.0

log = structlog.get_logger(__name__)


@asynccontextmanager
async def connected(kubeconfig: str | None) -> AsyncIterator[Rest]:
    """The API server, by the credentials that `open_session` finds; raises what that raises."""
    async with open_session(kubeconfig) as session:
        yield Rest(session)


class NodeInCluster:
    """One node as the API server sees it: its slices, its claims, its events."""

    def __init__(
        self,
        rest: Rest,
        settings: NodeSettings,
        held: Callable[[], Awaitable[tuple[PreparedClaim, ...]]],
        *,
        may_publish: Callable[[], bool],
        meter: Meter = NOBODY,
    ) -> None:
        """`held` gives the claims that are prepared on this node."""
        self._rest = rest
        # Under its name, as the kubelet's own events are: `kubectl describe node` shows it.
        name = settings.node_name
        self._node = Subject(api_version="v1", kind="Node", name=name, uid=name)
        self._recorder = Recorder(rest, controller=f"{DOMAIN}/node", instance=settings.node_name)
        self._publisher = Publisher(
            rest,
            driver=settings.driver,
            node=settings.node_name,
            may_publish=may_publish,
            meter=meter,
        )
        # What it shows is published.
        self.board = Board(self._publisher.devices)
        self._cordon = Cordon(
            rest, self.board, self._recorder, driver=settings.driver, node=settings.node_name
        )

        self._statuses = StatusWriter(rest, held, driver=settings.driver)
        # Told of the cards' health, by the name of their device.
        self.health = self._statuses.health
        # Told of a claim that has been prepared.
        self.prepared = self._statuses.prepared

    async def run(self) -> None:
        """Publish and tell until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._recorder.run())
            group.create_task(self._cordon.run())
            group.create_task(self._statuses.run())
            # A restart must not offer a closed card, not even for a moment.
            with suppress(TimeoutError):
                async with asyncio.timeout(_CORDON_PATIENCE_S):
                    await self._cordon.synced()
            group.create_task(self._publisher.run())

    async def get_claim(
        self, namespace: str, name: str, *, cached: bool = False
    ) -> ResourceClaim | None:
        """Read from the API server; None when there is none of that name.

        `cached` is cheaper for the API server, and may be some moments old.
        """
        path = f"/apis/{API_VERSION}/namespaces/{namespace}/resourceclaims/{name}"
        params = {"resourceVersion": "0"} if cached else {}
        try:
            found = await self._rest.get(path, params=params, timeout=_READ_TIMEOUT_S)
        except NotFound:
            return None
        return decode(ResourceClaim, found)

    async def claims(self, wanted: Callable[[ResourceClaim], bool]) -> list[ResourceClaim]:
        """Those of all claims in the cluster that are wanted; asked until there is an answer.

        Where it is forbidden there are none: with too few rights a node must work all the same.
        """
        backoff = Backoff(base=_RETRY_FIRST_S, cap=_RETRY_LAST_S)
        while True:
            try:
                return [claim async for claim in self._listed() if wanted(claim)]
            except Forbidden as error:
                log.warning(
                    "claims cannot be listed; see the rights in docs/install.md", error=str(error)
                )
                return []
            except KubeError as error:
                log.warning("claims not listed; trying again", error=str(error))
                await asyncio.sleep(backoff.next())

    async def _listed(self) -> AsyncGenerator[ResourceClaim, None]:
        async for page in self._rest.pages(f"/apis/{API_VERSION}/resourceclaims"):
            for item in page.items or ():
                yield decode(ResourceClaim, bytes(item))

    def report_rules(self, fault: str) -> None:
        """An Event on the Node of attribute rules that cannot be used."""
        self._recorder.record(self._node, events.RULES_REFUSED, fault)

    def report_use(self, claim: ClaimRef, reason: str) -> None:
        """An Event on the claim that has to wait."""
        log.error("device in use by another claim", claim=str(claim), reason=reason)
        subject = Subject(
            api_version=API_VERSION,
            kind="ResourceClaim",
            name=claim.name,
            namespace=claim.namespace,
            uid=claim.uid,
        )
        self._recorder.record(subject, events.DEVICE_IN_USE, reason)
