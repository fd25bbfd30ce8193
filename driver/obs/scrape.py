"""`GET /metrics`: what Prometheus reads, over plain HTTP."""

from collections.abc import Awaitable, Callable

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

PATH = "/metrics"
Prepare = Callable[[], Awaitable[None]]


async def _nothing() -> None:
    return


def route(registry: CollectorRegistry, *, before: Prepare = _nothing) -> web.RouteDef:
    """The route for an aiohttp application; `before` fetches what collectors cannot wait for."""

    async def handle(request: web.Request) -> web.Response:
        await before()
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(registry), headers={"Content-Type": content_type})

    return web.get(PATH, handle)
