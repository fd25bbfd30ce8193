"""The plugin's metrics, counted and served over plain HTTP on a port that the settings name."""

import asyncio
from collections.abc import Callable, Sequence

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry

from driver.model.resourceslice import Device
from driver.node.errors import NodeError
from driver.node.exposition import DeviceCollector
from driver.node.meter import Meter
from driver.node.state.store import ClaimStore
from driver.obs import scrape
from driver.obs.metrics import NodeMetrics

log = structlog.get_logger(__name__)


class PrometheusMeter(Meter):
    """Counts in Prometheus' own instruments."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self.registry = CollectorRegistry()
        self._metrics = NodeMetrics(self.registry)

    def claim(self, operation: str, *, done: bool, seconds: float) -> None:
        """See `Meter.claim`."""
        self._metrics.claims.labels(operation, _result(done=done)).observe(seconds)

    def double_use(self) -> None:
        """See `Meter.double_use`."""
        self._metrics.double_uses.inc()

    def slices(self, *, done: bool) -> None:
        """See `Meter.slices`."""
        self._metrics.slice_writes.labels(_result(done=done)).inc()

    def registered(self, *, accepted: bool) -> None:
        """See `Meter.registered`."""
        self._metrics.registered.set(accepted)

    async def serve(self, devices: Callable[[], Sequence[Device]], store: ClaimStore) -> None:
        """Serve `/metrics`, the devices included; raises `NodeError` when the address is taken."""
        collector = DeviceCollector(devices, store)
        self.registry.register(collector)
        app = web.Application()
        app.add_routes([scrape.route(self.registry, before=collector.refresh)])
        runner = web.AppRunner(app, access_log=None, handle_signals=False)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._host, self._port).start()
            log.info("metrics served", host=self._host, port=self._port)
            await asyncio.Event().wait()
        except OSError as error:
            raise NodeError(
                f"metrics cannot be served at {self._host}:{self._port}: {error}"
            ) from error
        finally:
            await runner.cleanup()


def _result(*, done: bool) -> str:
    return "done" if done else "failed"
