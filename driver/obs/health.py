"""Whether the process is alive and ready, as the kubelet asks it. Knows names and reasons only."""

from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

Check = Callable[[], str | None]
"""Why something is not well, in a few words; None when it is. Must not block."""
_Handler = Callable[[web.Request], Awaitable[web.Response]]


def routes(*, live: Mapping[str, Check], ready: Mapping[str, Check]) -> list[web.RouteDef]:
    """`/livez` and `/readyz` for an aiohttp application.

    Each answers 200, or 503 when a check is not well, and lists all checks as Kubernetes' own
    components do. A process that only waits for others is alive: `live` is for what a restart
    would mend.
    """
    return [web.get("/livez", _handler(live)), web.get("/readyz", _handler(ready))]


def _handler(checks: Mapping[str, Check]) -> _Handler:
    async def handle(_: web.Request) -> web.Response:
        reasons = {name: check() for name, check in checks.items()}
        lines = [
            f"[+]{name} ok" if reason is None else f"[-]{name} failed: {reason}"
            for name, reason in reasons.items()
        ]
        well = all(reason is None for reason in reasons.values())
        text = "\n".join([*lines, "ok" if well else "not ok"]) + "\n"
        return web.Response(text=text, status=200 if well else 503)

    return handle
