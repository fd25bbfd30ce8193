"""URLs: Kubernetes' library on Go's net/url, read as a request's target.

Such a URL is absolute, or a path; it has no fragment, so a # belongs to its path or query.
"""

import re
from typing import ClassVar
from urllib.parse import quote, unquote_to_bytes

import msgspec

from driver.selector import cost
from driver.selector.errors import CelError, no_such_overload
from driver.selector.functions.library import Overload, function, method
from driver.selector.types import BOOL, STRING, URL, list_of, map_of

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_USER = re.compile(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*")
_HOST = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:\[\]<>\"-]|[^\x00-\x7f]|%(?:25|[89A-Fa-f].))*")
_PORT = re.compile(r"(?::[0-9]*)?")
# What Go leaves alone in a path that it escapes itself, and in one that came escaped.
_PATH_SAFE = "$&+,/:;=@-_.~"
_ESCAPED_PATH = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@\[\]/-]|%[0-9A-Fa-f]{2})*")


class UrlValue(msgspec.Struct, frozen=True):
    """The parts of a URL that an expression can ask for, and its text."""

    text: str
    scheme: str
    host: str
    path: str
    query: str

    cel_type: ClassVar[str] = URL.name

    def equals(self, other: object) -> bool:
        """Whether both are written the same."""
        if not isinstance(other, UrlValue):
            raise no_such_overload()
        return self.text == other.text


def _parse(text: str) -> UrlValue:
    if not text or _CONTROL.search(text):
        raise _invalid(text, "empty url" if not text else "invalid control character in URL")
    if text == "*":
        return UrlValue(text, "", "", "*", "")
    match = _SCHEME.fullmatch(text)
    scheme, rest = (match[1].lower(), match[2]) if match else ("", text)
    if not match and text.startswith(":"):
        raise _invalid(text, "missing protocol scheme")
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if not scheme:
            raise _invalid(text, "invalid URI for request")
        return UrlValue(text, scheme, "", "", query)
    host = ""
    if scheme and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        host, rest = _host(text, authority), slash + path
    if _BAD_ESCAPE.search(rest):
        raise _invalid(text, "invalid URL escape")
    return UrlValue(text, scheme, host, _escaped(rest), query)


def _host(text: str, authority: str) -> str:
    user, _, host = authority.rpartition("@")
    if not _USER.fullmatch(user) or _BAD_ESCAPE.search(user):
        raise _invalid(text, "net/url: invalid userinfo")
    if not _HOST.fullmatch(host) or _BAD_ESCAPE.search(host):
        raise _invalid(text, "invalid character in host name")
    if host.startswith("["):
        inner, bracket, port = host.rpartition("]")
        if not bracket or not inner:
            raise _invalid(text, "missing ']' in host")
    else:
        port = host[host.rfind(":") :] if ":" in host else ""
    if not _PORT.fullmatch(port):
        raise _invalid(text, f"invalid port {port[:64]!r} after host")
    return unquote_to_bytes(host).decode(errors="replace")


def _escaped(path: str) -> str:
    if _ESCAPED_PATH.fullmatch(path):
        return path
    return quote(unquote_to_bytes(path), safe=_PATH_SAFE)


def _invalid(text: str, reason: str) -> CelError:
    return CelError(f"URL parse error during conversion from string: parse {text[:64]!r}: {reason}")


def is_url(text: str) -> bool:
    """`isURL(text)`."""
    try:
        _parse(text)
    except CelError:
        return False
    return True


def _hostname(url: UrlValue) -> str:
    if url.host.startswith("["):
        return url.host[1 : url.host.rfind("]")]
    head, colon, tail = url.host.rpartition(":")
    return head if (colon and tail.isdigit()) or (colon and not tail) else url.host


def _port(url: UrlValue) -> str:
    after = url.host[url.host.rfind("]") + 1 :]
    _, colon, port = after.rpartition(":")
    return port if colon and port.isdigit() else ""


def _query(url: UrlValue) -> dict[object, object]:
    found: dict[object, object] = {}
    for part in url.query.split("&"):
        key, _, value = part.partition("=")
        # Go drops what it cannot read.
        if not part or ";" in part or _BAD_ESCAPE.search(part):
            continue
        values = found.setdefault(_plain(key), [])
        if isinstance(values, list):
            values.append(_plain(value))
    return found


def _plain(text: str) -> str:
    return unquote_to_bytes(text.replace("+", " ")).decode(errors="replace")


OVERLOADS: tuple[Overload, ...] = (
    function("url", (STRING,), URL, _parse, cost=cost.scan),
    function("isURL", (STRING,), BOOL, is_url, cost=cost.scan),
    method("getScheme", (URL,), STRING, lambda url: url.scheme),
    method("getHost", (URL,), STRING, lambda url: url.host),
    method("getHostname", (URL,), STRING, _hostname),
    method("getPort", (URL,), STRING, _port),
    method("getEscapedPath", (URL,), STRING, lambda url: url.path),
    method("getQuery", (URL,), map_of(STRING, list_of(STRING)), _query),
)
