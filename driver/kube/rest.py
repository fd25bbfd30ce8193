# ruff: noqa: ASYNC109  # a timeout here bounds one try, not the whole call
"""One call to the API server, answered or failed for good: errors sorted, retries bounded.

Works on paths and bytes; what the bytes mean is the caller's business. The rules for trying again:
- what was certainly not acted upon (no connection, 429) is always tried again;
- a 5xx, a broken connection or a time limit leaves open what happened, so only reads are tried
  again, and writes for which the caller says that twice is the same as once (`repeatable`).
"""

import random
from collections.abc import AsyncGenerator, Callable, Mapping

import msgspec

from driver.kube.backoff import Backoff, Clock, Random, SystemClock
from driver.kube.errors import KubeError, Retryable, TooManyRequests, Unreachable, api_error
from driver.kube.transport import Request, Response, Session
from driver.model.errors import InvalidObjectError
from driver.wire.decode import decode

TIMEOUT = 30.0
PAGE_SIZE = 500

Answered = Callable[[str, str, float], None]


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often one call is tried, and the delays between the tries in seconds."""

    attempts: int = 5
    base: float = 0.2
    cap: float = 10.0
    longest_retry_after: float = 30.0


ONCE = RetryPolicy(attempts=1)


class ListMeta(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a list says of itself."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One page of a list, its objects still raw."""

    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] | None = None


class Preconditions(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What must hold for a deletion to happen; else Conflict."""

    uid: str = ""
    resource_version: str = ""


class _DeleteOptions(msgspec.Struct, frozen=True, rename="camel"):
    preconditions: Preconditions
    kind: str = "DeleteOptions"
    api_version: str = "v1"


def _unheard(_verb: str, _result: str, _seconds: float) -> None:
    return


class Rest:
    """Calls to one API server.

    `timeout` is for one try in seconds. All methods raise the errors of `driver.kube.errors`.
    `answered` is told of every try: its verb, "done" or the name of the error, and its seconds.
    """

    def __init__(
        self,
        session: Session,
        *,
        policy: RetryPolicy | None = None,
        clock: Clock | None = None,
        jitter: Random = random.random,
        answered: Answered = _unheard,
    ) -> None:
        self.session = session
        self._answered = answered
        self._policy = policy or RetryPolicy()
        self._clock = clock or SystemClock()
        self._jitter = jitter

    async def get(
        self, path: str, *, params: Mapping[str, str] | None = None, timeout: float = TIMEOUT
    ) -> bytes:
        """Read one object, or anything else at a path."""
        request = Request(method="GET", path=path, params=params or {})
        return await self._call(request, timeout=timeout, repeatable=True)

    async def pages(
        self, path: str, *, params: Mapping[str, str] | None = None, timeout: float = TIMEOUT
    ) -> AsyncGenerator[Page, None]:
        """Read a list page by page, all pages from one moment.

        Without a resourceVersion in `params` the first page is read from a quorum of etcd. Raises
        Gone when the moment is forgotten before the last page is read: start again.
        """
        query = {"limit": str(PAGE_SIZE), **(params or {})}
        while True:
            page = _read_page(path, await self.get(path, params=query, timeout=timeout))
            yield page
            if not page.metadata.continue_:
                return
            # The token carries the version; the server refuses to be told both.
            query.pop("resourceVersion", None)
            query.pop("resourceVersionMatch", None)
            query["continue"] = page.metadata.continue_

    async def create(
        self,
        path: str,
        body: bytes,
        *,
        params: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT,
        repeatable: bool = False,
    ) -> bytes:
        """Create an object in the collection at `path`; raises AlreadyExists."""
        request = Request(method="POST", path=path, params=params or {}, body=body)
        return await self._call(request, timeout=timeout, repeatable=repeatable)

    async def patch(
        self,
        path: str,
        body: bytes,
        content_type: str,
        *,
        params: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT,
        repeatable: bool = False,
    ) -> bytes:
        """Change an object; the content types are in `driver.wire.patch`.

        A patch that names a resourceVersion raises Conflict when the object has moved on, and so
        does its repetition after it went through: say `repeatable` only where that is understood.
        """
        request = Request(
            method="PATCH", path=path, params=params or {}, body=body, content_type=content_type
        )
        return await self._call(request, timeout=timeout, repeatable=repeatable)

    async def delete(
        self,
        path: str,
        *,
        preconditions: Preconditions | None = None,
        params: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT,
    ) -> bytes:
        """Delete an object; raises NotFound when it is gone, also by an earlier try of this call.

        With a uid as precondition a repetition cannot hit a successor of the same name, so it is
        only then tried again after an unknown outcome.
        """
        body = msgspec.json.encode(_DeleteOptions(preconditions)) if preconditions else None
        request = Request(method="DELETE", path=path, params=params or {}, body=body)
        repeatable = bool(preconditions and preconditions.uid)
        return await self._call(request, timeout=timeout, repeatable=repeatable)

    async def _call(self, request: Request, *, timeout: float, repeatable: bool) -> bytes:
        backoff = Backoff(base=self._policy.base, cap=self._policy.cap, jitter=self._jitter)
        for tries_left in reversed(range(self._policy.attempts)):
            try:
                return await self._once(request, timeout=timeout)
            except (Retryable, Unreachable) as error:
                if not tries_left or not self._again(error, repeatable=repeatable):
                    raise
                delay = max(backoff.next(), _asked_delay(error))
            await self._clock.sleep(delay)
        raise AssertionError("a retry policy of no attempts at all")

    async def _once(self, request: Request, *, timeout: float) -> bytes:
        began = self._clock.now()
        try:
            body = _body(request, await self.session.exchange(request, timeout=timeout))
        except KubeError as error:
            self._answered(request.method, type(error).__name__, self._clock.now() - began)
            raise
        self._answered(request.method, "done", self._clock.now() - began)
        return body

    def _again(self, error: KubeError, *, repeatable: bool) -> bool:
        if _asked_delay(error) > self._policy.longest_retry_after:
            return False
        untouched = isinstance(error, TooManyRequests) or (
            isinstance(error, Unreachable) and not error.sent
        )
        return repeatable or untouched


def _asked_delay(error: KubeError) -> float:
    return (error.retry_after or 0.0) if isinstance(error, Retryable) else 0.0


def _body(request: Request, response: Response) -> bytes:
    if response.status < 300:  # noqa: PLR2004 # HTTP
        return response.body
    raise api_error(str(request), response.status, response.headers, response.body)


def _read_page(path: str, data: bytes) -> Page:
    try:
        return decode(Page, data)
    except InvalidObjectError as error:
        raise KubeError(f"GET {path}: the answer is no list: {error}") from error
