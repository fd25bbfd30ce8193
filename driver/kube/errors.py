# ruff: noqa: N818  # the names are those of Kubernetes' own error predicates
"""What can go wrong between this process and the API server, one class for each way to react.

Knows statuses and the server's `Status` object; must not know how requests are sent or repeated.
"""

from collections.abc import Mapping

import msgspec

from driver.model.errors import QuadrantError

MAX_MESSAGE = 500
_FIRST_SERVER_ERROR = 500


class KubeError(QuadrantError):
    """Talking to the API server failed."""


class CredentialsError(KubeError):
    """No usable way to reach or to authenticate to a cluster was found."""


class Unreachable(KubeError):
    """No answer came: no connection, a connection that broke, or a time limit that passed.

    `sent` says whether the server may have acted on the request all the same. False only where
    it is certain that no byte of it arrived.
    """

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class ApiError(KubeError):
    """The API server answered with an error.

    `reason` is the machine-readable word of the `Status` object ("AlreadyExists"), `causes` are
    the reasons of its details, `retry_after` is in seconds.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int,
        reason: str = "",
        causes: tuple[str, ...] = (),
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.causes = causes
        self.retry_after = retry_after


class BadRequest(ApiError):
    """The request makes no sense to the server (400)."""


class Unauthorized(ApiError):
    """The credentials were not accepted (401)."""


class Forbidden(ApiError):
    """The credentials do not allow this, or an admission hook refused it (403)."""


class NotFound(ApiError):
    """There is no such object, or no such resource (404)."""


class Conflict(ApiError):
    """The object has changed since it was read, or a precondition does not hold (409)."""


class AlreadyExists(Conflict):
    """An object of this name is there already (409)."""


class Gone(ApiError):
    """The resourceVersion or the page asked for is no longer kept (410): list again."""


class Invalid(ApiError):
    """The object breaks a rule of its type (422)."""


class Retryable(ApiError):
    """The server could not do it now (429 and 5xx); a later try may succeed."""


class TooManyRequests(Retryable):
    """The server turned the request away before it looked at it (429)."""


class StatusCause(msgspec.Struct, frozen=True):
    """One detail of a failure."""

    reason: str = ""


class StatusDetails(msgspec.Struct, frozen=True):
    """The details of a failure."""

    causes: tuple[StatusCause, ...] = ()


class Status(msgspec.Struct, frozen=True):
    """The part of a `meta/v1` Status that is read."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: StatusDetails | None = None


_BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}
_status_decoder = msgspec.json.Decoder(Status)


def api_error(what: str, status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """The error for an answer; `what` names the request ("GET /api/v1/nodes").

    A body that is no Status object (a proxy's page, say) is quoted as it is. Long texts are cut.
    """
    try:
        answer = _status_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        answer = Status(message=body[: MAX_MESSAGE + 1].decode(errors="replace"))
    # The API server writes seconds. A date, as a proxy may, is left to our own back-off.
    wait = headers.get("Retry-After", "")
    return _error(what, status, answer, float(wait) if wait.isdecimal() else None)


def watch_error(what: str, status: Status) -> ApiError:
    """The error for a Status that came as an event of a watch."""
    return _error(what, status.code, status, None)


def _error(what: str, code: int, answer: Status, retry_after: float | None) -> ApiError:
    message = answer.message.strip() or "no message"
    if len(message) > MAX_MESSAGE:
        message = message[: MAX_MESSAGE - 1] + "…"
    kind = _BY_STATUS.get(code, Retryable if code >= _FIRST_SERVER_ERROR else ApiError)
    if kind is Conflict and answer.reason == "AlreadyExists":
        kind = AlreadyExists
    causes = answer.details.causes if answer.details else ()
    return kind(
        f"{what}: {' '.join(filter(None, (str(code), answer.reason)))}: {message}",
        status=code,
        reason=answer.reason,
        causes=tuple(cause.reason for cause in causes),
        retry_after=retry_after,
    )
