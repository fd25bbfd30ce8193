"""The HTTPS server that the API server's admission webhooks call.

It reads reviews, keeps to the caller's deadline, writes answers, and tells a handler when its
answer cannot have arrived. It must not know what is decided, nor how.
"""

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable, Mapping

import msgspec
import structlog
from aiohttp import web

from driver.model.errors import InvalidObjectError
from driver.obs.logging import operation
from driver.wire import decode
from driver.wire.admission import AdmissionRequest, AdmissionReview, allowed, denied
from driver.wire.patch import Operation

# A review carries an object twice, and the API server takes objects of 3 MiB at most.
MAX_BODY = 8 * 1024 * 1024
DEFAULT_TIMEOUT = 10.0
# What is left of the caller's patience when we give up, so that our refusal still arrives.
MARGIN = 0.25
_SHUTDOWN = 5.0
# The API server lets go of idle connections after 90 s. It must be the first to do so: a review
# sent into a connection that we are closing fails.
_KEEP_ALIVE = 180.0
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ms|h|m|s)", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}

_log = structlog.get_logger(__name__)


class Allowed(msgspec.Struct, frozen=True):
    """Let it pass, changed by the operations where there are any."""

    operations: tuple[Operation, ...] = ()
    warnings: tuple[str, ...] = ()


class Denied(msgspec.Struct, frozen=True):
    """Refuse it with a sentence for whoever asked.

    With `close` the connection ends too, so that the next question may go to another replica.
    """

    message: str
    close: bool = False


Answer = Allowed | Denied


class Call:
    """One question on its way to an answer, as a handler sees it."""

    def __init__(self, request: web.Request, deadline: float) -> None:
        self.deadline = deadline
        """When the caller stops waiting, on the clock of the event loop."""
        self._request = request
        self._lost: list[Callable[[], None]] = []

    @property
    def gone(self) -> bool:
        """Whether the caller is known to have hung up. False is no proof that it has not."""
        transport = self._request.transport
        return transport is None or transport.is_closing()

    def on_lost(self, callback: Callable[[], None]) -> None:
        """Call this when the answer was certainly not written: nobody can act on it."""
        self._lost.append(callback)

    def lose(self) -> None:
        """Run the callbacks of `on_lost`, once."""
        callbacks, self._lost = self._lost, []
        for callback in callbacks:
            callback()


Handler = Callable[[AdmissionRequest, Call], Awaitable[Answer]]
"""Decides on one request. It is cancelled at the deadline, and when it raises, the request is
answered as its route says; what it has noted until then it takes back itself."""


Answered = Callable[[str, str, float], None]
"""Told of every review: its path, what came of it (`allowed`, `denied`, `failed`: no answer in
time or an error, `unreadable`), and the seconds from its first byte to its answer's last."""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """What serves one path.

    `fails_closed`: where the handler cannot answer, the request is refused. Otherwise the answer
    is an HTTP error, and the webhook's failurePolicy decides.
    """

    handler: Handler
    fails_closed: bool


class AdmissionServer:
    """Serves routes over TLS from `start` to `stop`. The TLS context may be renewed meanwhile."""

    def __init__(
        self,
        routes: Mapping[str, Route],
        context: ssl.SSLContext,
        *,
        answered: Answered = lambda _path, _result, _seconds: None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        app = web.Application(client_max_size=MAX_BODY)
        self._parting = False
        for path, route in routes.items():
            endpoint = _Endpoint(path, route, answered, is_last=lambda: self._parting)
            app.router.add_post(path, endpoint.serve)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handle_signals=False,
            keepalive_timeout=_KEEP_ALIVE,
            shutdown_timeout=_SHUTDOWN,
        )
        self._context = context
        self._host, self._port = host, port

    @property
    def port(self) -> int:
        """The port that is listened on; known once started, also where 0 was asked for."""
        address: tuple[str, int] = self._runner.addresses[0]
        return address[1]

    async def start(self) -> None:
        """Listen; raises OSError when the address is taken."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port, ssl_context=self._context)
        await site.start()

    def part(self) -> None:
        """Answer on, and end each connection with its answer: the next review may go elsewhere."""
        self._parting = True

    async def stop(self) -> None:
        """Stop listening, let running calls end for some seconds, close all connections."""
        await self._runner.cleanup()


class _Endpoint:
    """One path: from the bytes of a review to the bytes of its answer."""

    def __init__(
        self, path: str, route: Route, answered: Answered, *, is_last: Callable[[], bool]
    ) -> None:
        """`is_last`: whether an answer is to end its connection."""
        self._path, self._route, self._answered = path, route, answered
        self._is_last = is_last

    async def serve(self, request: web.Request) -> web.StreamResponse:
        clock = asyncio.get_running_loop().time
        began = clock()
        deadline = began + max(timeout_of(request.query.get("timeout", "")) - MARGIN, MARGIN)
        with operation():
            result, response = await self._answer(request, Call(request, deadline))
        self._answered(self._path, result, clock() - began)
        return response

    async def _answer(self, request: web.Request, call: Call) -> tuple[str, web.StreamResponse]:
        try:
            async with asyncio.timeout_at(call.deadline):
                review = decode.decode(AdmissionReview, await request.read())
        except InvalidObjectError as error:
            return "unreadable", web.Response(status=400, text=f"{error}\n")
        except TimeoutError:
            text = "the review did not arrive in time\n"
            return "unreadable", web.Response(status=408, text=text)
        answer = await self._decide(review.request, call)
        response = self._response(review.request, answer)
        if self._is_last():
            response.force_close()
        return _result(answer), await _send(request, call, response)

    async def _decide(self, request: AdmissionRequest, call: Call) -> Answer | None:
        """The handler's answer; None when it has none to give."""
        try:
            async with asyncio.timeout_at(call.deadline):
                return await self._route.handler(request, call)
        except TimeoutError:
            _log.warning("admission.late", path=self._path, **_who(request))
        except Exception:  # noqa: BLE001 # whatever it is: who asks must get an answer, and a log line
            _log.exception("admission.failed", path=self._path, **_who(request))
        call.lose()
        return None

    def _response(self, request: AdmissionRequest, answer: Answer | None) -> web.Response:
        if answer is None and not self._route.fails_closed:
            return web.Response(status=500, text=f"{_no_answer(request)}\n")
        if answer is None:
            answer = Denied(_no_answer(request))
        if isinstance(answer, Denied):
            response = _json(denied(request.uid, answer.message))
            if answer.close:
                response.force_close()
            return response
        patch = list(answer.operations)
        return _json(allowed(request.uid, patch=patch, warnings=answer.warnings))


def _result(answer: Answer | None) -> str:
    if answer is None:
        return "failed"
    return "allowed" if isinstance(answer, Allowed) else "denied"


async def _send(request: web.Request, call: Call, response: web.Response) -> web.StreamResponse:
    """Write the answer here, where it is seen when nobody is there to take it."""
    if call.gone:
        call.lose()
        return response
    try:
        await response.prepare(request)
        await response.write_eof()
    except ConnectionError:
        # Part of it may have been written: what the caller knows is open, so nothing is lost yet.
        _log.info("admission.interrupted", path=request.path)
    return response


def _json(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json")


def _who(request: AdmissionRequest) -> dict[str, str]:
    return {"uid": request.uid, "namespace": request.namespace, "name": request.name}


def _no_answer(request: AdmissionRequest) -> str:
    return (
        f"Quadrant could not decide on {request.namespace}/{request.name} in time or failed at it; "
        "the controller's log says why under the review's uid "
        f"{request.uid}. It is safe to try again."
    )


def timeout_of(text: str) -> float:
    """How long the caller waits in seconds, from Go's way of writing a duration ("2.5s", "1m0s").

    What cannot be read, or is not there, counts as the API's own default.
    """
    if not text or _DURATION.sub("", text):
        return DEFAULT_TIMEOUT
    return sum(float(number) * _SECONDS[unit] for number, unit in _DURATION.findall(text))
