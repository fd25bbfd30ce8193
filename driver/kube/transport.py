"""How bytes get to the API server and back: pooled connections with credentials applied.

Knows neither objects nor resources, and repeats nothing except a request that was turned away for
stale credentials. Where address and credentials come from is `driver.kube.session`'s business.
"""

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

import aiohttp
import msgspec
from yarl import URL

from driver.kube.errors import Unreachable

JSON = "application/json"
CONNECT_TIMEOUT = 10.0
READ_BUFFER = 2**18
USER_AGENT = "quadrant"
_UNAUTHORIZED = 401


class Credentials(Protocol):
    """The current credentials for a cluster, kept fresh by their owner."""

    async def authorization(self) -> str | None:
        """The value of the Authorization header; None where a client certificate speaks.

        Raises CredentialsError when there is none to be had now; it may come back.
        """
        ...

    async def renew(self, refused: str | None) -> bool:
        """The server refused this Authorization value: get another. False when there is none."""
        ...


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where an API server is, how to connect to it, and the namespace meant by default."""

    url: str
    namespace: str = "default"
    tls: ssl.SSLContext | None = None
    tls_server_name: str | None = None
    proxy: str | None = None


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP request; the path starts with a slash."""

    method: str
    path: str
    params: Mapping[str, str] = {}
    body: bytes | None = None
    content_type: str = JSON

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Response(msgspec.Struct, frozen=True):
    """A whole answer, whatever its status; header names match in any case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Stream:
    """An answer that is read while it arrives."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def body(self) -> bytes:
        """All of it, for an answer that turned out to be an error; raises as `lines` does."""
        try:
            return await self._response.read()
        except (aiohttp.ClientError, OSError) as error:
            raise _broken(error) from error

    async def lines(self) -> AsyncGenerator[bytes, None]:
        """Each line as soon as its end is there, however long it is.

        Raises Unreachable when the connection breaks. What follows the last line end when the
        server closes is half an event and is dropped.
        """
        pieces: list[bytes] = []
        try:
            async for chunk in self._response.content.iter_any():
                head, *rest = chunk.split(b"\n")
                pieces.append(head)
                for piece in rest:
                    yield b"".join(pieces)
                    pieces = [piece]
        except (aiohttp.ClientError, OSError) as error:
            raise _broken(error) from error


class Session:
    """The connections to one API server; made by `driver.kube.session.open_session`."""

    def __init__(self, endpoint: Endpoint, credentials: Credentials) -> None:
        self.endpoint = endpoint
        self._base = endpoint.url.rstrip("/")
        self._credentials = credentials
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=endpoint.tls or True, limit=0),
            # As other Kubernetes clients do: the environment's proxy never serves loopback.
            trust_env=URL(self._base).host not in ("127.0.0.1", "::1", "localhost"),
            read_bufsize=READ_BUFFER,
            headers={"User-Agent": USER_AGENT},
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()

    async def exchange(self, request: Request, *, timeout: float) -> Response:  # noqa: ASYNC109 # it is the contract
        """Send one request and read the whole answer within `timeout` seconds.

        Any status is an answer. Raises Unreachable when none came.
        """
        limit = aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_TIMEOUT)
        try:
            async with self._open(request, limit) as answer:
                return Response(answer.status, answer.headers, await answer.read())
        except (aiohttp.ClientError, OSError) as error:
            # The answer's body broke off; TimeoutError is an OSError.
            raise Unreachable(f"{request}: {_words(error)}", sent=True) from error

    @asynccontextmanager
    async def stream(
        self, path: str, *, params: Mapping[str, str] | None = None
    ) -> AsyncIterator[Stream]:
        """GET an answer that may go on for ever; the caller watches the clock."""
        request = Request(method="GET", path=path, params=params or {})
        limit = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT)
        async with self._open(request, limit) as answer:
            yield Stream(answer)

    @asynccontextmanager
    async def _open(
        self, request: Request, limit: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer's head, after one more try with new credentials where they were refused.

        A request answered with 401 was never acted upon, so sending it again is always safe.
        """
        authorization = await self._credentials.authorization()
        answer = await self._send(request, limit, authorization)
        if answer.status == _UNAUTHORIZED and await self._credentials.renew(authorization):
            answer.release()
            authorization = await self._credentials.authorization()
            answer = await self._send(request, limit, authorization)
        async with answer:
            yield answer

    async def _send(
        self, request: Request, limit: aiohttp.ClientTimeout, authorization: str | None
    ) -> aiohttp.ClientResponse:
        headers = {"Accept": JSON}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        if authorization:
            headers["Authorization"] = authorization
        try:
            return await self._http.request(
                request.method,
                self._base + request.path,
                params=request.params,
                data=request.body,
                headers=headers,
                proxy=self.endpoint.proxy,
                server_hostname=self.endpoint.tls_server_name,
                timeout=limit,
            )
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise Unreachable(f"{request}: {_words(error)}", sent=False) from error
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(f"{request}: {_words(error)}", sent=True) from error


def _broken(error: Exception) -> Unreachable:
    return Unreachable(f"the stream broke: {_words(error)}", sent=True)


def _words(error: Exception) -> str:
    # A timeout has no text of its own.
    return str(error) or type(error).__name__
