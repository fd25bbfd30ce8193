import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from driver.obs.health import routes

WELL = "[+]loop ok\nok\n"


@pytest.mark.parametrize(
    ("path", "reason", "status", "text"),
    [
        ("/livez", "not read", 200, WELL),
        ("/readyz", None, 200, "[+]loop ok\n[+]claims ok\nok\n"),
        ("/readyz", "not read", 503, "[+]loop ok\n[-]claims failed: not read\nnot ok\n"),
    ],
)
async def test_the_kubelet_is_told_what_is_wrong(
    path: str, reason: str | None, status: int, text: str
) -> None:
    """Ready and alive are asked apart; every check is named."""
    app = web.Application()
    well = {"loop": lambda: None}
    app.add_routes(routes(live=well, ready=well | {"claims": lambda: reason}))
    async with (
        TestServer(app) as server,
        ClientSession() as client,
        client.get(server.make_url(path)) as answer,
    ):
        assert (answer.status, await answer.text()) == (status, text)
