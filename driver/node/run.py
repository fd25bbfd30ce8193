"""The node plugin as a process: everything wired up, started, and ended in the right order.

The kubelet comes first: its sockets are served before the API server is asked for anything. What
has to do with the API server is in `driver.node.cluster`.
"""

import asyncio
import secrets
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import grpc.aio
import structlog

from driver.model.errors import QuadrantError
from driver.node import cdi, lost
from driver.node.card import Inventory
from driver.node.cdifiles import CdiFiles
from driver.node.claims import NodeFacts
from driver.node.errors import NodeError
from driver.node.health.service import add_health
from driver.node.health.start import start_ward
from driver.node.inventories import inventory, numbered
from driver.node.link import Link
from driver.node.prepare import Preparer
from driver.node.recover import recover
from driver.node.registration import RegistrationService, add_registration
from driver.node.service import ClaimWork, Preparing, Unpreparing, add_services
from driver.node.settings import NodeSettings
from driver.node.sharing.offered import cards_by_name
from driver.node.sharing.start import start_sharing
from driver.node.sockets import bind, clear_dead
from driver.node.store import ClaimStore
from driver.node.turn import Turn
from driver.node.vendor import vendor_devices

if TYPE_CHECKING:
    from driver.kube.rest import Rest

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_GRACE_S = 5.0
_VENDOR_PERIOD_S = 30.0

# Gives the connection to the API server for as long as the plugin runs.
Connect = Callable[[], AbstractAsyncContextManager["Rest"]]

log = structlog.get_logger(__name__)


async def run(settings: NodeSettings) -> None:
    """Serve the node until SIGTERM or SIGINT.

    Raises `QuadrantError` when the plugin cannot start: wrong settings, cards that cannot be read,
    a checkpoint that cannot be opened, no credentials, a socket that cannot be bound.
    """
    plugin = await asyncio.to_thread(NodePlugin, settings)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await plugin.serve(partial(_connected, settings.kubeconfig), stop)


@asynccontextmanager
async def _connected(kubeconfig: str | None) -> AsyncIterator["Rest"]:
    # In a thread, because the kubelet may be calling already.
    await asyncio.to_thread(import_module, "driver.node.cluster")
    from driver.node.cluster import connected  # noqa: PLC0415

    async with connected(kubeconfig) as rest:
        yield rest


class NodePlugin:
    """One instance. Making it does all that can fail locally, and starts nothing.

    Blocks on disk and hardware: make it in a thread where there is an event loop.
    """

    def __init__(self, settings: NodeSettings, *, cards: Inventory | None = None) -> None:
        settings.check()
        self._settings = settings
        found = cards or inventory(settings)
        folder = Path(settings.data_dir())
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o750)
            self._boot = _BOOT_ID.read_text().strip()
            self._inventory = numbered(settings, found, boot=self._boot)
            self._cards = self._inventory.cards()
            self._files = CdiFiles(Path(settings.cdi_dir), settings.driver)
            self._store = ClaimStore(folder / "claims.journal")
            recover(self._store, self._files, boot=self._boot)
            self._setup, self._offered = start_sharing(
                settings, self._cards, self._store, boot=self._boot
            )
            self._turn = Turn(folder, settings.pod_uid or secrets.token_hex(8))
        except OSError as error:
            raise NodeError(f"folders of the plugin cannot be used: {error}") from error
        self._facts = self._read_facts()
        self._ward = start_ward(settings, found, self._facts.cards, boot=self._boot)

    async def serve(self, connect: Connect, stop: asyncio.Event) -> None:
        """Serve the kubelet and publish the devices until `stop` is set, then end tidily.

        The slices stay: a restart must not look like a node without GPUs. Raises what `connect`
        raises.
        """
        link, limit = Link(), self._settings.parallel_claims
        preparer = self._preparer(link)
        preparing = ClaimWork(limit, preparer.prepare)
        unpreparing = ClaimWork(limit, preparer.unprepare)
        # The connection outlives the calls that are finished at the end.
        async with AsyncExitStack() as connection:
            try:
                async with AsyncExitStack() as servers:
                    await self._listen(servers, preparing, unpreparing)
                    servers.callback(link.close)
                    join = self._join(link, lambda: connection.enter_async_context(connect()))
                    await self._until(stop, join, self._follow_vendor(), self._ward.run())
            finally:
                await preparing.drain()
                await unpreparing.drain()
                self._store.close()
                self._turn.close()

    async def _join(self, link: Link, connect: Callable[[], Awaitable["Rest"]]) -> None:
        """Be part of the cluster: what prepares is linked, what there is gets published."""
        rest = await connect()
        from driver.node.cluster import NodeInCluster  # noqa: PLC0415  (see `driver.node.link`)
        from driver.node.sharing.probe import published  # noqa: PLC0415

        node = NodeInCluster(rest, self._settings, may_publish=self._turn.mine)
        link.connect(node)
        node.board.devices(await published(rest, self._settings, self._offered))
        node.board.taints(lost.SOURCE, lost.taints(self._cards, driver=self._settings.driver))
        self._ward.show_on(node.board)
        await node.run()

    async def _until(self, stop: asyncio.Event, *work: Coroutine[object, object, None]) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(item) for item in work]
                await stop.wait()
                log.info("ending; slices and prepared claims stay", node=self._settings.node_name)
                for task in tasks:
                    task.cancel()
        except ExceptionGroup as errors:
            # What is told in a sentence, and not with a traceback, has no group around it.
            told, others = errors.split(QuadrantError)
            if told is None or others is not None:
                raise
            first: Exception = told
            while isinstance(first, ExceptionGroup):
                first = first.exceptions[0]
            raise first from None

    async def _listen(
        self, servers: AsyncExitStack, preparing: Preparing, unpreparing: Unpreparing
    ) -> None:
        """Have the driver's socket served before the kubelet is told of it; end in reverse."""
        settings = self._settings
        clear_dead(Path(settings.registry_dir), f"{settings.driver}-*reg.sock")
        clear_dead(Path(settings.data_dir()), "dra-*.sock")
        driver = grpc.aio.server()
        add_services(driver, preparing=preparing, unpreparing=unpreparing)
        add_health(driver, self._ward.bulletin, pool=settings.node_name)
        bind(driver, Path(settings.driver_socket()))
        await driver.start()
        servers.push_async_callback(driver.stop, _GRACE_S)
        # A stream that goes on would be waited for.
        servers.callback(self._ward.bulletin.close)
        registrar = grpc.aio.server()
        service = RegistrationService(settings.driver, settings.driver_socket())
        add_registration(registrar, service)
        bind(registrar, Path(settings.registration_socket()))
        await registrar.start()
        servers.push_async_callback(registrar.stop, None)
        servers.callback(Path(settings.registration_socket()).unlink, missing_ok=True)
        log.info("serving", driver=settings.driver, node=settings.node_name, cards=len(self._cards))

    def _preparer(self, link: Link) -> Preparer:
        return Preparer(
            self._store,
            self._files,
            self._setup,
            get_claim=link.get_claim,
            node=lambda: self._facts,
            on_double_use=link.report_use,
        )

    def _read_facts(self) -> NodeFacts:
        settings = self._settings
        vendor: dict[str, str] = {}
        if not settings.simulate:
            uuids = self._offered.uuids()
            skip = cdi.file_prefix(settings.driver)
            vendor = vendor_devices(settings.vendor_cdi_dirs, uuids, skip=skip)
        return NodeFacts(
            driver=settings.driver,
            pool=settings.node_name,
            boot=self._boot,
            cards=cards_by_name(self._offered),
            parts=self._offered.parts,
            vendor_devices=vendor,
            cuts_cards=self._offered.cuts_cards(),
            mps_dir=settings.mps_dir,
            hami_core_dir=settings.hami_core_dir,
            hami_core_state=str(settings.data_dir() / "hami"),
        )

    async def _follow_vendor(self) -> None:
        # The toolkit may describe the cards after this plugin has started, and again later. It
        # knows nothing of simulated ones.
        while not self._settings.simulate:
            await asyncio.sleep(_VENDOR_PERIOD_S)
            self._facts = await asyncio.to_thread(self._read_facts)
