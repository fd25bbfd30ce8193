"""Reviews over real HTTPS: answers, deadlines, errors, callers that hang up."""

import asyncio
import base64
import io
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
import structlog

from driver.admission.certificates import ServingCertificate
from driver.admission.server import (
    MAX_BODY,
    AdmissionServer,
    Allowed,
    Answer,
    Call,
    Denied,
    Handler,
    Route,
    timeout_of,
)
from driver.wire.admission import AdmissionRequest
from driver.wire.patch import add
from tests.logged import logged


def review(**fields: Any) -> dict[str, Any]:
    """A question."""
    request = {"uid": "u-1", "namespace": "team", "name": "c", **fields}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


class Caller:
    """Asks a server that has one handler on two paths: one fails closed, one open."""

    def __init__(self, session: aiohttp.ClientSession, base: str) -> None:
        self._session, self._base = session, base

    def post(self, path: str = "/commit", *, timeout: str = "5s", **fields: Any) -> Any:
        """The raw response."""
        return self._session.post(f"{self._base}{path}?timeout={timeout}", json=review(**fields))

    def raw(self, body: bytes | io.BytesIO, path: str = "/commit") -> Any:
        """The raw response to a body that is no review."""
        return self._session.post(f"{self._base}{path}", data=body)

    async def ask(self, path: str = "/commit", **fields: Any) -> dict[str, Any]:
        """The response part of the answer."""
        async with self.post(path, **fields) as response:
            assert (response.status, response.content_type) == (200, "application/json")
            answer = await response.json()
        assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        assert answer["response"]["uid"] == "u-1"
        found: dict[str, Any] = answer["response"]
        return found


Serve = Callable[[Handler], Any]


@pytest.fixture
def serve(serving: ServingCertificate, trusting: Callable[[], ssl.SSLContext]) -> Serve:
    """Runs a server with a handler and gives a caller that trusts it."""

    @asynccontextmanager
    async def run(handler: Handler) -> AsyncIterator[Caller]:
        routes = {
            "/commit": Route(handler=handler, fails_closed=True),
            "/pods": Route(handler=handler, fails_closed=False),
        }
        server = AdmissionServer(routes, serving.context)
        await server.start()
        connector = aiohttp.TCPConnector(ssl=trusting())
        async with aiohttp.ClientSession(connector=connector) as session:
            yield Caller(session, f"https://127.0.0.1:{server.port}")
        await server.stop()

    return run


def always(answer: Answer) -> Handler:
    """A handler with one answer."""

    async def handle(_: AdmissionRequest, __: Call) -> Answer:
        return answer

    return handle


async def never(_: AdmissionRequest, __: Call) -> Answer:
    """A handler that does not come to an end."""
    await asyncio.Event().wait()
    raise AssertionError


async def fails(_: AdmissionRequest, __: Call) -> Answer:
    """A handler with a fault."""
    raise ValueError("a secret detail")


async def test_allows(serve: Serve) -> None:
    """Nothing to change: no patch is sent."""
    async with serve(always(Allowed())) as caller:
        assert await caller.ask() == {"uid": "u-1", "allowed": True}


async def test_allows_with_a_patch_and_warnings(serve: Serve) -> None:
    """Operations become a JSON patch in base64."""
    answer = Allowed((add("/metadata/labels", {"a": "b"}),), ("mind the gap",))
    async with serve(always(answer)) as caller:
        found = await caller.ask()
    assert found["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(found["patch"])) == list(answer.operations)
    assert found["warnings"] == ["mind the gap"]


async def test_denies_with_403(serve: Serve) -> None:
    """A sentence and a plain 403: a 409 would make the scheduler retry at once."""
    async with serve(always(Denied("no room"))) as caller:
        found = await caller.ask()
    assert found["allowed"] is False
    assert (found["status"]["code"], found["status"]["message"]) == (403, "no room")


async def test_handler_sees_the_request(serve: Serve) -> None:
    """The objects arrive raw, dryRun is told, the deadline is a moment before the caller's."""
    seen: list[tuple[AdmissionRequest, float]] = []

    async def handle(request: AdmissionRequest, call: Call) -> Answer:
        seen.append((request, call.deadline - asyncio.get_running_loop().time()))
        assert not call.gone
        return Allowed()

    async with serve(handle) as caller:
        await caller.ask(object={"x": 1}, dryRun=True, timeout="8s")
    ((request, left),) = seen
    assert (json.loads(bytes(request.object)), request.dry_run) == ({"x": 1}, True)
    assert 0 < left < 8


@pytest.mark.parametrize("handler", [never, fails])
async def test_no_answer_fails_as_the_route_says(serve: Serve, handler: Handler) -> None:
    """Late or broken, a commit is refused; for a pod the failurePolicy decides. Nothing leaks."""
    async with serve(handler) as caller:
        found = await caller.ask("/commit", timeout="300ms")
        assert found["allowed"] is False
        assert "team/c" in found["status"]["message"]
        assert "secret" not in found["status"]["message"]
        async with caller.post("/pods", timeout="300ms") as response:
            assert response.status == 500
            assert "secret" not in await response.text()


async def test_handler_is_cancelled_at_the_deadline(serve: Serve) -> None:
    """What runs late is told so, and what waits for a lost answer is called."""
    ended: list[str] = []

    async def handle(_: AdmissionRequest, call: Call) -> Answer:
        call.on_lost(lambda: ended.append("lost"))
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")
        raise AssertionError

    async with serve(handle) as caller:
        await caller.ask(timeout="300ms")
    assert ended == ["cancelled", "lost"]


async def test_caller_that_hangs_up(serve: Serve) -> None:
    """An answer that nobody is there to take is reported as lost; the server goes on."""
    asked, lost = asyncio.Event(), asyncio.Event()

    async def handle(request: AdmissionRequest, call: Call) -> Answer:
        if request.name == "stays":
            return Allowed()
        call.on_lost(lost.set)
        asked.set()
        while not call.gone:  # noqa: ASYNC110 # a handler has nothing else to go by
            await asyncio.sleep(0.001)
        return Allowed()

    async with serve(handle) as caller:
        asking = asyncio.create_task(caller.ask())
        await asked.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        async with asyncio.timeout(10):
            await lost.wait()
        assert (await caller.ask(name="stays"))["allowed"]


async def test_answer_that_arrives_is_not_lost(serve: Serve) -> None:
    """The callback is for answers that nobody got."""
    lost: list[str] = []

    async def handle(_: AdmissionRequest, call: Call) -> Answer:
        call.on_lost(lambda: lost.append("lost"))
        return Allowed()

    async with serve(handle) as caller:
        assert (await caller.ask())["allowed"]
        assert (await caller.ask())["allowed"]
    assert lost == []


async def test_connection_is_closed_on_demand(serve: Serve) -> None:
    """A replica that is not the leader sends its callers away for good."""
    away, stay = Denied("not the leader", close=True), Denied("no room")
    async with serve(always(away)) as caller, caller.post() as response:
        assert response.headers["Connection"] == "close"
    async with serve(always(stay)) as caller, caller.post() as response:
        assert "Connection" not in response.headers


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"request": {}}'])
async def test_what_is_no_review(serve: Serve, body: bytes) -> None:
    """Without a uid there is nothing to answer: an HTTP error, which every policy understands."""
    async with serve(always(Allowed())) as caller, caller.raw(body) as response:
        assert response.status == 400


async def test_body_limit(serve: Serve) -> None:
    """A body that no API server would send is not read to its end."""
    async with (
        serve(always(Allowed())) as caller,
        caller.raw(io.BytesIO(bytes(MAX_BODY + 1))) as response,
    ):
        assert response.status == 413


async def test_only_posts_to_known_paths(serve: Serve) -> None:
    """Everything else is an HTTP error."""
    async with serve(always(Allowed())) as caller:
        async with caller.raw(b"{}", "/other") as response:
            assert response.status == 404
        async with caller._session.get(f"{caller._base}/commit") as response:
            assert response.status == 405


async def test_many_at_once(serve: Serve) -> None:
    """Calls do not wait for each other."""
    waiting = 0
    together = asyncio.Event()

    async def handle(_: AdmissionRequest, __: Call) -> Answer:
        nonlocal waiting
        waiting += 1
        if waiting == 20:
            together.set()
        await together.wait()
        return Allowed()

    async with serve(handle) as caller:
        answers = await asyncio.gather(*(caller.ask() for _ in range(20)))
    assert all(answer["allowed"] for answer in answers)


async def test_parting(serving: ServingCertificate, trusting: Callable[[], ssl.SSLContext]) -> None:
    """Reviews are answered, on new connections too, and each answer is the last on its own."""
    routes = {"/pods": Route(handler=always(Allowed()), fails_closed=False)}
    server = AdmissionServer(routes, serving.context)
    await server.start()
    connector = aiohttp.TCPConnector(ssl=trusting())
    async with aiohttp.ClientSession(connector=connector) as session:
        kept = []
        for _ in range(3):
            url = f"https://127.0.0.1:{server.port}/pods"
            async with session.post(url, json=review()) as response:
                assert (await response.json())["response"]["allowed"]
                kept.append(response.headers.get("Connection") != "close")
            server.part()
    await server.stop()
    assert kept == [True, False, False]


async def lets_in(port: int) -> bool:
    """Whether somebody listens."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionError:
        return False
    writer.close()
    return True


async def test_a_call_under_way_is_answered_before_the_server_stops(
    serving: ServingCertificate, trusting: Callable[[], ssl.SSLContext]
) -> None:
    """Nobody is let in any more meanwhile."""
    asked, go = asyncio.Event(), asyncio.Event()

    async def handle(_: AdmissionRequest, __: Call) -> Answer:
        asked.set()
        await go.wait()
        return Allowed()

    server = AdmissionServer({"/commit": Route(handler=handle, fails_closed=True)}, serving.context)
    await server.start()
    port = server.port
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting())) as session:
        asking = asyncio.create_task(Caller(session, f"https://127.0.0.1:{port}").ask())
        await asked.wait()
        stopping = asyncio.create_task(server.stop())
        while await lets_in(port):  # noqa: ASYNC110 # nobody tells
            await asyncio.sleep(0.01)
        assert not stopping.done()
        go.set()
        assert (await asking)["allowed"]
    await stopping


async def test_taken_address(serving: ServingCertificate) -> None:
    """Two servers on one port are an error at the start."""
    first = AdmissionServer({}, serving.context)
    await first.start()
    second = AdmissionServer({}, serving.context, port=first.port)
    with pytest.raises(OSError, match="address already in use"):
        await second.start()
    await second.stop()
    await first.stop()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5s", 5),
        ("2.5s", 2.5),
        ("1m0s", 60),
        ("1h1m1s", 3661),
        ("250ms", 0.25),
        ("", 10),
        ("soon", 10),
        ("5", 10),
        ("-5s", 10),
    ],
)
def test_timeout_of(text: str, seconds: float) -> None:
    """Durations as Go writes them; the API's default for all else."""
    assert timeout_of(text) == seconds


async def test_every_review_is_told_with_what_came_of_it(
    serving: ServingCertificate, trusting: Callable[[], ssl.SSLContext]
) -> None:
    """Allowed, denied, failed, and what is no review; by path, with the time that it took."""
    handlers = [always(Allowed()), always(Denied("no")), fails]
    routes = {
        f"/{n}": Route(handler=handler, fails_closed=True) for n, handler in enumerate(handlers)
    }
    told: list[tuple[str, str, float]] = []
    server = AdmissionServer(
        routes, serving.context, answered=lambda *answered: told.append(answered)
    )
    await server.start()
    connector = aiohttp.TCPConnector(ssl=trusting())
    async with aiohttp.ClientSession(connector=connector) as session:
        base = f"https://127.0.0.1:{server.port}"
        for path in routes:
            async with session.post(base + path, json=review()) as response:
                await response.read()
        async with session.post(f"{base}/0", data=b"{") as response:
            assert response.status == 400
    await server.stop()
    assert [(path, result) for path, result, _ in told] == [
        ("/0", "allowed"),
        ("/1", "denied"),
        ("/2", "failed"),
        ("/0", "unreadable"),
    ]
    assert all(seconds > 0 for _, _, seconds in told)


async def test_the_lines_of_a_review_have_its_operation(serve: Serve) -> None:
    """Also those of tasks that it starts, and of a handler that fails; reviews do not share one."""
    log = structlog.get_logger("tests")

    async def handle(request: AdmissionRequest, _: Call) -> Answer:
        log.info("begun", name=request.name)
        await asyncio.create_task(asyncio.to_thread(log.info, "aside", name=request.name))
        raise RuntimeError("not today")

    with logged("info") as lines:
        async with serve(handle) as caller:
            await asyncio.gather(*(caller.ask(name=name) for name in "abc"))
        by_name: dict[str, set[str]] = {}
        for line in lines():
            if line["logger"] in ("tests", "driver.admission.server"):
                by_name.setdefault(line["name"], set()).add(line["operation"])
        assert sorted(line["message"] for line in lines() if line.get("name") == "a") == [
            "admission.failed",
            "aside",
            "begun",
        ]
    assert {len(found) for found in by_name.values()} == {1}
    assert len(set().union(*by_name.values())) == 3
