"""The node plugin as a process: everything wired up, started, and ended in the right order.

The kubelet comes first: its sockets are served before the API server is asked for anything. What
has to do with the API server is in `driver.node.cluster`.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

import structlog

from driver.model.errors import QuadrantError
from driver.node.card import Inventory
from driver.node.faults import Reach, pass_by
from driver.node.kubelet.calls import Calls
from driver.node.kubelet.listen import listen
from driver.node.local import LocalNode
from driver.node.meter import meter
from driver.node.settings import NodeSettings
from driver.node.showing import Showing
from driver.node.state.adopt import find_lost

if TYPE_CHECKING:
    from driver.kube.rest import Rest

# Gives the connection to the API server for as long as the plugin runs.
Connect = Callable[[], AbstractAsyncContextManager["Rest"]]

log = structlog.get_logger(__name__)


async def run(settings: NodeSettings, *, reach: Reach = pass_by) -> None:
    """Serve the node until SIGTERM or SIGINT.

    Raises `QuadrantError` when the plugin cannot start: wrong settings, cards that cannot be read,
    a checkpoint that cannot be opened, no credentials, a socket that cannot be bound.
    """
    plugin = await asyncio.to_thread(NodePlugin, settings, reach=reach)
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
    """One instance of the plugin; made as `LocalNode` is, and as that starts nothing."""

    def __init__(
        self, settings: NodeSettings, *, cards: Inventory | None = None, reach: Reach = pass_by
    ) -> None:
        self._settings = settings
        self._reach = reach
        self._local = LocalNode(settings, cards=cards, reach=reach)
        self._meter = meter(settings)

    async def serve(self, connect: Connect, stop: asyncio.Event) -> None:
        """Serve the kubelet and publish the devices until `stop` is set, then end tidily.

        The slices stay: a restart must not look like a node without GPUs. Raises what `connect`
        raises.
        """
        calls = Calls(self._local, self._settings, meter=self._meter, reach=self._reach)
        # The connection outlives the calls that are finished at the end.
        async with AsyncExitStack() as connection:
            try:
                async with AsyncExitStack() as servers:
                    await self._listen(servers, calls)
                    join = self._join(calls, lambda: connection.enter_async_context(connect()))
                    ward, vendor = self._local.ward.run(), self._local.follow_vendor()
                    await self._until(stop, join, vendor, ward)
            finally:
                await calls.drain()
                self._local.close()

    async def _listen(self, servers: AsyncExitStack, calls: Calls) -> None:
        await listen(
            servers,
            self._settings,
            preparing=calls.preparing,
            unpreparing=calls.unpreparing,
            bulletin=self._local.ward.bulletin,
            meter=self._meter,
        )
        # What waits for the API server is answered before the servers wait for it.
        servers.callback(calls.link.close)

    async def _join(self, calls: Calls, connect: Callable[[], Awaitable["Rest"]]) -> None:
        """Be part of the cluster: what prepares is linked, what there is gets published."""
        rest = await connect()
        from driver.node.cluster import NodeInCluster  # noqa: PLC0415  (see `driver.node.link`)
        from driver.node.sharing.probe import counters_kept  # noqa: PLC0415

        local, settings = self._local, self._settings
        node = NodeInCluster(
            rest, settings, local.store.claims, may_publish=local.turn.mine, meter=self._meter
        )
        await find_lost(local.store, node.claims, local.facts)
        calls.link.connect(node)
        showing = Showing(
            local,
            settings,
            node.board,
            counters=await counters_kept(rest, settings, local.offered),
            on_refusal=node.report_rules,
        )
        await showing.start()
        local.ward.show_on(node.board)
        local.ward.tell(node.health)
        async with asyncio.TaskGroup() as group:
            group.create_task(node.run())
            group.create_task(showing.run())
            group.create_task(self._meter.serve(lambda: node.board.shown, local.store))
            group.create_task(calls.occupied.run(node.get_claim, node.board.taints))

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
