"""Both processes' metrics with something in every series, as they are scraped."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry

from driver.controller.census import Census
from driver.controller.exposition import StateCollector
from driver.controller.term import Term
from driver.kube.informer import Informer
from driver.model.resourceclaim import ResourceClaim
from driver.model.resourceslice import Device, DeviceTaint
from driver.node.device import device
from driver.node.exposition import DeviceCollector
from driver.node.held import HeldDevice, PreparedClaim
from driver.node.simulated import cards
from driver.node.state.checkpoint import put
from driver.node.state.store import ClaimStore
from driver.obs import scrape
from driver.obs.metrics import ControllerMetrics, NodeMetrics
from driver.wire.decode import convert
from tests.controller.commits import claim, cluster, gpu, picked, proposed, request
from tests.controller.placements import pod

NODE = "n1"


def controller() -> CollectorRegistry:
    """Of a controller that leads a small cluster and has done everything once."""
    at = cluster(n1=[gpu(n, mebi=1000, productName="T4") for n in range(4)])
    taken = proposed(claim("c", request(mebi=400)), picked("gpu-0", mebi=400))
    at.put_claim(convert(ResourceClaim, taken), 0.0)
    census = Census(at)
    assert census.refresh(10)
    term = Term()
    term.renewed(10.0)
    term.begin(after=0.0)
    informer: Informer[ResourceClaim] = Informer(
        None,  # type: ignore[arg-type] # nothing is read here
        "/apis/resource.k8s.io/v1/resourceclaims",
        ResourceClaim,
        on_event=lambda _: None,
    )
    informer.restarts["Gone"] += 1
    informer.lists = 2
    informer.heard_at = 0.0
    registry = CollectorRegistry()
    work = ControllerMetrics(registry)
    work.reviews.labels("chosen").inc()
    work.denials.labels("nothing-fits").inc()
    for axis, kind in (("gpu", "in-use"), ("node", "node-taint")):
        work.rejections.labels(axis, kind).inc()
    work.conflicts.labels("review").inc()
    work.scores.labels("compact").observe(75.0)
    work.landed.observe(0.01)
    work.called("PATCH", "done", 0.01)
    work.called("PATCH", "Conflict", 0.01)
    work.decisions.observe(0.001)
    work.round_trips.labels("/commit", "allowed").observe(0.002)
    work.placements.labels("nominated").inc()
    work.waits.observe(0.1)
    work.plans.observe(0.001)
    work.reclaimed.inc()
    at.put_pod(pod("waits"))
    state = StateCollector(
        at, census, term, [informer], clock=lambda: 5.0, wall_clock=lambda: 1.8e9
    )
    registry.register(state)
    return registry


def published() -> tuple[Device, ...]:
    """Two cards, one of them tainted."""
    taint = DeviceTaint(key="gpu.quadrant.dev/unhealthy", value="xid-79", effect="NoSchedule")
    first, second = (device(card, shareable=True) for card in cards("2xT4", NODE))
    return first, msgspec.structs.replace(second, taints=(taint,))


def prepared() -> PreparedClaim:
    """A claim that holds half of the first card."""
    held = HeldDevice(
        request="gpu",
        pool=NODE,
        device="gpu-0",
        share_id="s",
        memory=1000,
        cores=50,
        index=0,
        uuid="GPU-0",
        model="T4",
        card_memory=2000,
    )
    return PreparedClaim(uid="u", namespace="ns", name="c", phase="done", boot="b", devices=(held,))


def node(folder: Path) -> tuple[CollectorRegistry, DeviceCollector]:
    """Of a plugin that has done everything once."""
    registry = CollectorRegistry()
    work = NodeMetrics(registry)
    for operation in ("prepare", "unprepare"):
        for result in ("done", "failed"):
            work.claims.labels(operation, result).observe(0.01)
    work.double_uses.inc()
    work.slice_writes.labels("done").inc()
    work.registered.set(1)
    store = ClaimStore(folder / "claims.journal")
    store.locked(lambda _: put(prepared()))
    devices = DeviceCollector(published, store)
    registry.register(devices)
    return registry, devices


@asynccontextmanager
async def served(*routes: web.RouteDef) -> AsyncIterator[str]:
    """An HTTP server with these routes; gives HOST:PORT."""
    app = web.Application()
    app.add_routes(routes)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0]
    yield f"{host}:{port}"
    await runner.cleanup()


def controller_route() -> web.RouteDef:
    """`/metrics` of the controller."""
    return scrape.route(controller())


def node_route(folder: Path) -> web.RouteDef:
    """`/metrics` of the plugin."""
    registry, devices = node(folder)
    return scrape.route(registry, before=devices.refresh)
