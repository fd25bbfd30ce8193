import asyncio
import json
from typing import Any

import pytest
from aiohttp import web

from driver.kube import errors
from driver.kube.informer import Informer
from driver.kube.rest import ONCE, Preconditions, Rest, RetryPolicy
from driver.kube.transport import Endpoint, Session
from driver.model.core import Node
from driver.wire.patch import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from tests.kube.apiserver import ApiServer, NoCredentials
from tests.kube.clock import FakeClock
from tests.kube.objects import Refusal
from tests.kube.watcher import until
from tests.logged import logged

NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"


def body(**metadata: Any) -> bytes:
    """An object with this metadata."""
    return json.dumps({"metadata": metadata}).encode()


async def test_an_object_lives_through_create_get_patch_delete(rest: Rest) -> None:
    """The five verbs work on one object."""
    created = json.loads(await rest.create(PODS, body(generateName="web-")))
    path = f"{PODS}/{created['metadata']['name']}"
    assert json.loads(await rest.get(path)) == created
    patched = json.loads(await rest.patch(path, b'{"metadata":{"labels":{"a":"b"}}}', MERGE_PATCH))
    assert patched["metadata"]["labels"] == {"a": "b"}
    await rest.delete(path)
    with pytest.raises(errors.NotFound):
        await rest.get(path)


@pytest.mark.parametrize(
    ("content_type", "patch"),
    [
        (JSON_PATCH, [{"op": "replace", "path": "/spec/list/0/v", "value": 2}]),
        (MERGE_PATCH, {"spec": {"list": [{"name": "x", "v": 2}, {"name": "y", "v": 3}]}}),
        (STRATEGIC_PATCH, {"spec": {"list": [{"name": "x", "v": 2}]}}),
    ],
)
async def test_each_kind_of_patch_is_understood(
    server: ApiServer, rest: Rest, content_type: str, patch: Any
) -> None:
    """The three kinds of patch reach the same state."""
    items = [{"name": "x", "v": 1}, {"name": "y", "v": 3}]
    server.put("/api/v1/nodes", {"metadata": {"name": "n"}, "spec": {"list": items}})
    answer = json.loads(await rest.patch(f"{NODES}/n", json.dumps(patch).encode(), content_type))
    assert answer["spec"]["list"] == [{"name": "x", "v": 2}, {"name": "y", "v": 3}]


async def test_a_stale_version_is_a_conflict_and_is_not_repeated(
    server: ApiServer, rest: Rest
) -> None:
    """A patch with an old resourceVersion changes nothing and is sent once."""
    server.put(NODES, {"metadata": {"name": "n"}})
    with pytest.raises(errors.Conflict):
        await rest.patch(f"{NODES}/n", body(resourceVersion="1", labels={"a": "b"}), MERGE_PATCH)
    assert "labels" not in server.get(NODES, "n")["metadata"]
    assert len(server.requests) == 1


async def test_a_name_in_use_is_its_own_conflict(server: ApiServer, rest: Rest) -> None:
    """AlreadyExists can be told from a stale version."""
    server.put(NODES, {"metadata": {"name": "n"}})
    with pytest.raises(errors.AlreadyExists):
        await rest.create(NODES, body(name="n"))


async def test_a_deletion_with_another_uid_does_nothing(server: ApiServer, rest: Rest) -> None:
    """A successor of the same name survives."""
    server.put(NODES, {"metadata": {"name": "n", "uid": "new"}})
    with pytest.raises(errors.Conflict):
        await rest.delete(f"{NODES}/n", preconditions=Preconditions(uid="old"))
    assert server.get(NODES, "n")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, errors.BadRequest),
        (401, errors.Unauthorized),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (409, errors.Conflict),
        (410, errors.Gone),
        (415, errors.ApiError),
        (422, errors.Invalid),
        (429, errors.TooManyRequests),
        (500, errors.Retryable),
        (503, errors.Retryable),
        (504, errors.Retryable),
    ],
)
async def test_every_status_has_its_error(
    server: ApiServer, code: int, kind: type[errors.ApiError]
) -> None:
    """The error tells status, reason, causes, the request, and a message of bounded length."""
    server.refuse(Refusal(code, "Why", "x" * 5000, causes=("Cause",)))
    async with server.session() as session:
        with pytest.raises(errors.ApiError) as caught:
            await Rest(session, policy=ONCE).get(NODES)
    assert type(caught.value) is kind
    assert (caught.value.status, caught.value.reason) == (code, "Why")
    assert caught.value.causes == ("Cause",)
    assert str(caught.value).startswith(f"GET {NODES}: {code} Why: xxx")
    assert len(str(caught.value)) < 600


async def test_a_page_of_a_proxy_is_quoted(server: ApiServer, rest: Rest) -> None:
    """An error that is no Status object is still shown."""
    server.faults.append(lambda _: web.Response(status=418, text="<html>teapot"))
    with pytest.raises(errors.ApiError, match="418: <html>teapot"):
        await rest.get(NODES)


@pytest.mark.parametrize("code", [429, 500, 502, 503])
async def test_reads_wait_longer_each_time_and_succeed(
    server: ApiServer, rest: Rest, clock: FakeClock, code: int
) -> None:
    """Delays double; the call ends well when the server does."""
    server.put(NODES, {"metadata": {"name": "n"}})
    server.refuse(Refusal(code, "Later"), times=3)
    assert await rest.get(f"{NODES}/n")
    assert clock.slept == pytest.approx([0.2, 0.4, 0.8])


async def test_reads_give_up_after_the_last_attempt(server: ApiServer, rest: Rest) -> None:
    """A server that stays broken is tried five times."""
    server.refuse(Refusal(503, "Later"), times=99)
    with pytest.raises(errors.Retryable):
        await rest.get(NODES)
    assert len(server.requests) == 5


async def test_every_try_is_told(server: ApiServer, clock: FakeClock) -> None:
    """With its verb and what came of it, so that conflicts and slow answers can be counted."""
    told: list[tuple[str, str]] = []

    def tell(verb: str, result: str, _seconds: float) -> None:
        told.append((verb, result))

    server.put(NODES, {"metadata": {"name": "n"}})
    async with server.session() as session:
        rest = Rest(session, clock=clock, answered=tell)
        server.refuse(Refusal(503, "Later"))
        await rest.get(f"{NODES}/n")
        with pytest.raises(errors.Conflict):
            await rest.patch(f"{NODES}/n", body(resourceVersion="1"), MERGE_PATCH)
    assert told == [("GET", "Retryable"), ("GET", "done"), ("PATCH", "Conflict")]


async def test_the_server_says_when_to_come_back(
    server: ApiServer, rest: Rest, clock: FakeClock
) -> None:
    """Retry-After beats a shorter delay of ours."""
    server.refuse(Refusal(429, "Later"), retry_after=7)
    await rest.get(NODES)
    assert clock.slept == [7.0]


async def test_a_wait_beyond_measure_is_passed_on(server: ApiServer, rest: Rest) -> None:
    """A Retry-After of an hour is the caller's to judge."""
    server.refuse(Refusal(503, "Later"), retry_after=3600)
    with pytest.raises(errors.Retryable) as caught:
        await rest.get(NODES)
    assert caught.value.retry_after == 3600.0


async def test_a_write_turned_away_unread_is_repeated(server: ApiServer, rest: Rest) -> None:
    """429 means that nothing happened, so any write may be sent again."""
    server.refuse(Refusal(429, "Later"))
    await rest.create(NODES, body(name="n"))
    assert server.get(NODES, "n")


@pytest.mark.parametrize("code", [500, 504])
async def test_a_write_of_unknown_outcome_is_not_repeated(
    server: ApiServer, rest: Rest, code: int
) -> None:
    """A 5xx leaves open whether the write happened."""
    server.refuse(Refusal(code, "Later"))
    with pytest.raises(errors.Retryable):
        await rest.create(NODES, body(generateName="n"))
    assert len(server.requests) == 1


async def test_a_lost_answer_is_not_repeated_unless_the_caller_says_so(
    server: ApiServer, rest: Rest
) -> None:
    """The object is there although no answer came; only a repeatable write is sent again."""
    server.hang_up_after("POST")
    with pytest.raises(errors.Unreachable) as caught:
        await rest.create(NODES, body(name="n"))
    assert caught.value.sent
    assert server.get(NODES, "n")
    server.hang_up_after("PATCH")
    await rest.patch(f"{NODES}/n", body(labels={"a": "b"}), MERGE_PATCH, repeatable=True)
    assert [line.split()[0] for line in server.requests] == ["POST", "PATCH", "PATCH"]


async def test_no_connection_means_nothing_was_sent(clock: FakeClock) -> None:
    """A write to a closed port is tried to the end and known not to have happened."""
    session = Session(Endpoint(url="http://127.0.0.1:1"), NoCredentials())
    try:
        with pytest.raises(errors.Unreachable) as caught:
            await Rest(session, clock=clock, policy=RetryPolicy(attempts=3)).create(NODES, b"{}")
    finally:
        await session.close()
    assert not caught.value.sent
    assert len(clock.slept) == 2


async def test_a_server_that_says_nothing_runs_into_the_time_limit(server: ApiServer) -> None:
    """A call ends although the server never answers."""
    server.answering.clear()
    async with server.session() as session:
        with pytest.raises(errors.Unreachable) as caught:
            await Rest(session, policy=ONCE).get(NODES, timeout=0.05)
    assert caught.value.sent


async def test_a_list_comes_in_pages_of_one_moment(server: ApiServer, rest: Rest) -> None:
    """What is created between two pages is in none of them."""
    for number in range(5):
        server.put(NODES, {"metadata": {"name": f"n{number}"}})
    names, versions = [], set()
    async for page in rest.pages(NODES, params={"limit": "2"}):
        names += [json.loads(bytes(item))["metadata"]["name"] for item in page.items or ()]
        versions.add(page.metadata.resource_version)
        server.put(NODES, {"metadata": {"name": f"n9{len(names)}"}})
    assert names == ["n0", "n1", "n2", "n3", "n4"]
    assert len(versions) == 1


async def test_a_forgotten_page_says_gone(server: ApiServer, rest: Rest) -> None:
    """A compaction between two pages ends the list with an error."""
    for number in range(3):
        server.put(NODES, {"metadata": {"name": f"n{number}"}})
    pages = rest.pages(NODES, params={"limit": "2"})
    await anext(pages)
    server.objects.advance()
    server.objects.compact()
    with pytest.raises(errors.Gone):
        await anext(pages)


class Rotating:
    """Credentials that are replaced once."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)

    async def authorization(self) -> str | None:
        """The current one."""
        return self.tokens[0]

    async def renew(self, refused: str | None) -> bool:
        """The next one, if there is one."""
        assert refused == self.tokens[0]
        if len(self.tokens) == 1:
            return False
        self.tokens.pop(0)
        return True


@pytest.mark.parametrize(("tokens", "accepted"), [(("old", "new"), True), (("old",), False)])
async def test_refused_credentials_are_renewed_once(
    server: ApiServer, tokens: tuple[str, ...], *, accepted: bool
) -> None:
    """After a 401 the same request, a write even, goes out with new credentials."""

    def check(request: web.Request) -> web.Response | None:
        if request.headers["Authorization"] == "new":
            return None
        return web.json_response(Refusal(401, "Unauthorized").status(), status=401)

    server.faults.append(check)
    session = Session(Endpoint(url=server.url), Rotating(*tokens))
    try:
        if accepted:
            await Rest(session).create(NODES, body(name="n"))
            assert server.get(NODES, "n")
        else:
            with pytest.raises(errors.Unauthorized):
                await Rest(session).create(NODES, body(name="n"))
    finally:
        await session.close()


async def test_no_error_and_no_log_line_has_the_token(server: ApiServer) -> None:
    """Whatever goes wrong, at the most talkative level."""
    said: list[str] = []
    server.refuse(Refusal(403, "Forbidden"), times=1)
    server.refuse(Refusal(500, "InternalError"), times=1)
    server.refuse(Refusal(401, "Unauthorized"), times=1)
    server.hang_up(times=1)
    with logged() as lines:
        session = Session(Endpoint(url=server.url), Rotating("Bearer s3cr3t"))
        for _ in range(4):
            with pytest.raises(errors.KubeError) as failed:
                await Rest(session, policy=ONCE).create(NODES, body(name="n"))
            said += [str(failed.value), repr(failed.value)]
        watching = asyncio.create_task(
            Informer(Rest(session, policy=ONCE), NODES, Node, on_event=lambda _: None).run()
        )
        server.refuse(Refusal(403, "Forbidden"), times=1)
        await until(lambda: any(line["message"] == "watch interrupted" for line in lines()))
        watching.cancel()
        await session.close()
        said += [json.dumps(line) for line in lines()]
    assert len(said) > 8
    assert not [text for text in said if "s3cr3t" in text]
