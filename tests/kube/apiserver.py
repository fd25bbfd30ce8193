"""A fake API server: real HTTP on loopback, Kubernetes' rules for lists, watches and writes.

    async with ApiServer() as server:
        server.put("/api/v1/nodes", {"metadata": {"name": "n1"}})
        async with server.session() as session:
            rest = Rest(session)

Faults: `server.faults` is asked before each request; `refuse`, `hang_up` and `hang_up_after` fill
it; clear `answering` to stall. Watches: `drop_watches`, `bookmark`, `send_raw`, `silent`.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Self

from aiohttp import web

from driver.kube.transport import Endpoint, Session
from tests.kube.objects import Change, Json, Key, Objects, Refusal
from tests.kube.patches import PatchError, json_patch, merge_patch, strategic_patch
from tests.kube.selectors import Selector

PATCHES: dict[str, Callable[[Any, Any], Any]] = {
    "application/json-patch+json": json_patch,
    "application/merge-patch+json": merge_patch,
    "application/strategic-merge-patch+json": strategic_patch,
    "application/apply-patch+yaml": merge_patch,
}
Fault = Callable[[web.Request], web.Response | None]


class NoCredentials:
    """A server that asks for none."""

    async def authorization(self) -> str | None:
        """No header."""
        return None

    async def renew(self, refused: str | None) -> bool:  # a protocol
        """Nothing to renew."""
        return False


class HangUpError(Exception):
    """The connection ends without an answer."""


class ApiServer:
    """One server; use it as an async context manager."""

    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.objects = Objects()
        self.documents: dict[str, Json] = {"/version": {"major": "1", "minor": "37"}}
        self.faults: list[Fault] = []
        self.requests: list[str] = []
        self.streams_lists = True
        self.silent = False
        # Cleared, no request is answered.
        self.answering = asyncio.Event()
        self.answering.set()
        self.gone_as_event = False
        self.url = ""
        self._watches: set[_Watch] = set()
        self._runner: web.AppRunner | None = None
        self._hang_up_after: list[str] = []

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.2)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"{'https' if self._tls else 'http'}://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.drop_watches()
        if self._runner is not None:
            await self._runner.cleanup()

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """A client's session with this server."""
        session = Session(Endpoint(url=self.url), NoCredentials())
        try:
            yield session
        finally:
            await session.close()

    # What tests do behind the server's back.

    def put(self, collection: str, item: Json) -> Json:
        """Create or replace an object, status included; `collection` as "/api/v1/pods"."""
        metadata = item["metadata"]
        key = Key(collection, metadata.get("namespace", ""), metadata["name"])
        if key not in self.objects.objects:
            return self.objects.create(key, item)
        old = self.objects.objects[key]
        kept = {"uid": old["metadata"]["uid"]}
        new = {**json.loads(json.dumps(item)), "metadata": {**metadata, **kept}}
        return self.objects._store(key, old, new, dry_run=False)

    def remove(self, collection: str, name: str, namespace: str = "") -> None:
        """Delete an object, finalizers or not."""
        self.objects._remove(Key(collection, namespace, name), dry_run=False)

    def get(self, collection: str, name: str, namespace: str = "") -> Json:
        """An object as it is now."""
        return self.objects.get(Key(collection, namespace, name))

    @property
    def watching(self) -> int:
        """How many watches are open."""
        return len(self._watches)

    def refuse(
        self,
        refusal: Refusal,
        *,
        times: int = 1,
        retry_after: int | None = None,
        path: str = "",
        method: str = "",
    ) -> None:
        """Answer the next requests (whose path contains `path`, by `method`) with an error."""
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        left = [times]

        def fault(request: web.Request) -> web.Response | None:
            if path not in request.path or method not in request.method or not left[0]:
                return None
            left[0] -= 1
            return web.json_response(refusal.status(), status=refusal.code, headers=headers)

        self.faults.append(fault)

    def hang_up(self, *, times: int = 1) -> None:
        """Close the connection of the next requests unanswered, with nothing done."""
        left = [times]

        def fault(_: web.Request) -> web.Response | None:
            if left[0]:
                left[0] -= 1
                raise HangUpError
            return None

        self.faults.append(fault)

    def hang_up_after(self, method: str) -> None:
        """Do what the next request of this method says, then close without an answer."""
        self._hang_up_after.append(method)

    def drop_watches(self) -> None:
        """Break all watch connections."""
        for watch in list(self._watches):
            watch.queue.put_nowait(None)

    def bookmark(self) -> None:
        """Tell every watch the current version."""
        for watch in self._watches:
            watch.bookmark(self.objects.version)

    def send_raw(self, line: bytes) -> None:
        """Write a line of anything into every watch."""
        for watch in self._watches:
            watch.queue.put_nowait(line)

    # HTTP.

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.path_qs}")
        await self.answering.wait()
        try:
            for fault in self.faults:
                if (refused := fault(request)) is not None:
                    return refused
            answer = await self._answer(request)
            self._lose_answer(request.method)
        except Refusal as refusal:
            return web.json_response(refusal.status(), status=refusal.code)
        except HangUpError:
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        return answer

    def _lose_answer(self, method: str) -> None:
        if method in self._hang_up_after:
            self._hang_up_after.remove(method)
            raise HangUpError

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.path in self.documents:
            return web.json_response(self.documents[request.path])
        key, subresource = parse(request.path)
        if request.method == "GET" and not key.name:
            selector = Selector(request.query)
            if request.query.get("watch") in ("1", "true"):
                return await self._serve_watch(request, key, selector)
            return web.json_response(self._list(request, key, selector))
        body = await request.read()
        return self._write(request, key, subresource, json.loads(body) if body else {})

    def _write(
        self, request: web.Request, key: Key, subresource: str, body: Any
    ) -> web.StreamResponse:
        dry_run = request.query.get("dryRun") == "All"
        if request.method == "GET":
            return web.json_response(self.objects.get(key))
        if request.method == "POST":
            item = self.objects.create(key, body, dry_run=dry_run)
            return web.json_response(item, status=201)
        if request.method == "DELETE":
            preconditions = body.get("preconditions")
            return web.json_response(self.objects.delete(key, preconditions, dry_run=dry_run))
        change = self._change(request, body)
        return web.json_response(
            self.objects.update(key, change, subresource=subresource, dry_run=dry_run)
        )

    def _change(self, request: web.Request, body: Any) -> Callable[[Json], Json]:
        if request.method == "PUT":
            return lambda _: body
        if request.content_type not in PATCHES:
            raise Refusal(415, "UnsupportedMediaType", request.content_type)

        def change(old: Json) -> Json:
            try:
                patched: Json = PATCHES[request.content_type](old, body)
            except PatchError as error:
                raise Refusal(422, "Invalid", str(error)) from error
            return patched

        return change

    def _list(self, request: web.Request, key: Key, selector: Selector) -> Json:
        """All or a page; the continue token is "version.offset" into the list of that version."""
        items = [
            item
            for item in self.objects.in_collection(key.collection, key.namespace)
            if selector.matches(item)
        ]
        version, start = self.objects.version, 0
        if token := request.query.get("continue"):
            version, start = (int(part) for part in token.split("."))
            if version < self.objects.compacted:
                raise Refusal(410, "Expired", "the continue parameter is too old")
            items = [item for item in items if int(item["metadata"]["resourceVersion"]) <= version]
        limit = int(request.query.get("limit", 0)) or len(items)
        more = start + limit < len(items)
        metadata = {"resourceVersion": str(version)}
        if more:
            metadata["continue"] = f"{version}.{start + limit}"
        return {"kind": "List", "metadata": metadata, "items": items[start : start + limit]}

    async def _serve_watch(
        self, request: web.Request, key: Key, selector: Selector
    ) -> web.StreamResponse:
        watch = _Watch(key, selector)
        query = request.query
        if query.get("sendInitialEvents") == "true":
            if not self.streams_lists:
                raise Refusal(422, "Invalid", "sendInitialEvents is forbidden")
            items = self.objects.in_collection(key.collection, key.namespace)
            watch.initial(items, self.objects.version)
        else:
            try:
                watch.after = int(query["resourceVersion"])
                for change in self.objects.changes(watch.after):
                    watch.change(change)
            except Refusal as gone:
                if not self.gone_as_event:
                    raise
                watch.send("ERROR", gone.status())
                watch.queue.put_nowait(None)
        self.objects.listeners.append(watch.change)
        self._watches.add(watch)
        try:
            return await self._stream(request, watch)
        finally:
            self._watches.discard(watch)
            self.objects.listeners.remove(watch.change)

    async def _stream(self, request: web.Request, watch: "_Watch") -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        timeout = float(request.query.get("timeoutSeconds", 3600))
        try:
            async with asyncio.timeout(timeout):
                while (line := await watch.queue.get()) is not None:
                    if not self.silent:
                        await response.write(line + b"\n")
        except TimeoutError:
            pass
        return response


class _Watch:
    """One open watch: what is still to be written to it."""

    def __init__(self, key: Key, selector: Selector) -> None:
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        # As the real one: what is not behind this version is not told, even if it comes later.
        self.after = 0
        self._key = key
        self._selector = selector

    def send(self, kind: str, item: Json) -> None:
        self.queue.put_nowait(json.dumps({"type": kind, "object": item}).encode())

    def initial(self, items: list[Json], version: int) -> None:
        for item in items:
            if self._selector.matches(item):
                self.send("ADDED", item)
        self.bookmark(version, {"k8s.io/initial-events-end": "true"})

    def bookmark(self, version: int, annotations: Json | None = None) -> None:
        if version < self.after:
            return
        metadata = {"resourceVersion": str(version), "annotations": annotations or {}}
        self.send("BOOKMARK", {"metadata": metadata})

    def change(self, change: Change) -> None:
        """A change as this watch's selector sees it."""
        if change.key.collection != self._key.collection or change.version <= self.after:
            return
        if self._key.namespace not in ("", change.key.namespace):
            return
        before = change.old is not None and self._selector.matches(change.old)
        after = change.new is not None and self._selector.matches(change.new)
        if after and change.new is not None:
            self.send("MODIFIED" if before else "ADDED", change.new)
        elif before and change.old is not None:
            metadata = change.old["metadata"] | {"resourceVersion": str(change.version)}
            self.send("DELETED", change.old | {"metadata": metadata})


def parse(path: str) -> tuple[Key, str]:
    """The place that a path names, and the subresource ("" for none)."""
    parts = path.strip("/").split("/")
    depth = 2 if parts[0] == "api" else 3
    prefix, rest = "/" + "/".join(parts[:depth]), parts[depth:]
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    if not rest:
        raise Refusal(404, "NotFound", f"the server could not find {path}")
    resource, name, subresource = [*rest, "", ""][:3]
    return Key(f"{prefix}/{resource}", namespace, name), subresource
