"""`/ui` and `/ui/data` over plain HTTP: GET only, nothing that is secret, nobody else's page.

On a loopback address (so also through `kubectl port-forward`) it is always there. On any other it
has to be allowed, for whoever reaches it sees names of namespaces, pods and claims.
"""

import ipaddress
import re
from http import HTTPStatus

from aiohttp import web

from driver.cli.ui.page import CONTENT_SECURITY_POLICY, page
from driver.cli.ui.pictures import Pictures

PATH = "/ui"
# `kubectl port-forward` arrives here.
LOCAL = "127.0.0.1"
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_PORT = re.compile(r":[0-9]*$")
_HEADERS = {
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Ui:
    """The page's handlers; `open_to_all` allows others than this host."""

    def __init__(self, pictures: Pictures, *, open_to_all: bool) -> None:
        self._pictures = pictures
        self._open_to_all = open_to_all
        self._page = page()

    def routes(self) -> list[web.RouteDef]:
        """For an aiohttp application."""
        return [web.get(PATH, self._document), web.get(f"{PATH}/data", self._data)]

    async def _document(self, request: web.Request) -> web.Response:
        self._check(request)
        headers = {**_HEADERS, "Content-Security-Policy": CONTENT_SECURITY_POLICY}
        return web.Response(text=self._page, content_type="text/html", headers=headers)

    async def _data(self, request: web.Request) -> web.Response:
        """The newest picture; 304 for who has it."""
        self._check(request)
        picture = await self._pictures.latest()
        tag = f'"{picture.tag}"'
        headers = {**_HEADERS, "ETag": tag}
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
        # Every browser takes gzip; who does not say so gets it all the same, as the header says.
        headers["Content-Encoding"] = "gzip"
        return web.Response(body=picture.body, content_type="application/json", headers=headers)

    def _check(self, request: web.Request) -> None:
        if self._open_to_all:
            return
        if not _arrived_locally(request):
            raise web.HTTPNotFound(
                text="the page is served on the loopback address only: kubectl port-forward, or "
                "start the controller with --ui\n"
            )
        # A page of the Internet may call itself by a name that leads to 127.0.0.1.
        if _PORT.sub("", request.host) not in _LOCAL_NAMES:
            raise web.HTTPForbidden(text="ask for it by the name localhost\n")


def needs_local(host: str) -> bool:
    """Whether a server on this address has to listen on the loopback address besides."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)


def _arrived_locally(request: web.Request) -> bool:
    name = request.transport.get_extra_info("sockname") if request.transport is not None else None
    try:
        return ipaddress.ip_address(name[0]).is_loopback if name else False
    except ValueError:
        return False
