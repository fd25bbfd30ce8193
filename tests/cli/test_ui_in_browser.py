"""The controller's page in a real browser: live, by keyboard, linked both ways, without colour."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest
from aiohttp import web

from driver.cli.ui.pictures import Pictures
from driver.cli.ui.server import Ui
from driver.controller.cluster import Cluster
from driver.model.resourceclaim import ResourceClaim
from driver.wire.decode import convert
from tests.cli.browser import Page, browse, chromium, running
from tests.cli.test_fleet import card, instance
from tests.cli.test_page_in_browser import contrast
from tests.controller.commits import Json, claim, cluster, picked, proposed, request
from tests.controller.placements import node

pytestmark = pytest.mark.browser
FOCUSED = "document.activeElement.getAttribute('aria-label')"
DETAILS = "document.getElementById('details').textContent"
XSS = "<img src=x onerror=document.title='taken'>"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The browser that all tests share."""
    program = chromium()
    if program is None:
        pytest.skip("no Chromium: install it (apt-get install chromium), or run this as root")
    with running(program, tmp_path_factory.mktemp("browser")) as address:
        yield address


class Site:
    """The page, its address, and the cluster behind it."""

    def __init__(self, at: Cluster) -> None:
        self.at = at
        self.url = ""
        self.asked = 0
        self.is_down = False

    def hold(self, name: str, *devices: str, on: str, mebi: int = 0) -> None:
        """A claim with these devices."""
        results = [picked(device, node=on, mebi=mebi) for device in devices]
        made = proposed(claim(name, request()), *results, node=on)
        made["status"]["reservedFor"] = [
            {"resource": "pods", "name": f"pod-of-{name}", "uid": name}
        ]
        self.at.put_claim(convert(ResourceClaim, made), now=0.0)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    """Every state of a card, on two nodes, served as the controller does."""
    taint: Json = {"key": "gpu.quadrant.dev/unhealthy", "effect": "NoSchedule"}
    at = cluster(
        hopper=[card(n, group=str(n // 2), numa=n // 2) for n in range(4)],
        other=[card(0), instance(0, 0, "1g.10gb"), card(1) | {"taints": [taint]}],
    )
    at.put_node(node("hopper"))
    found = Site(at)
    found.hold("whole", "gpu-0", "gpu-2", on="hopper")
    found.hold("share", "gpu-1", on="hopper", mebi=8192)
    found.hold("part", "gpu-0-mig-0", on="other")
    waiting = claim("waits", request())
    waiting["metadata"]["annotations"] = {}
    at.put_claim(convert(ResourceClaim, waiting), now=0.0)

    @web.middleware
    async def counting(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if found.is_down:
            return web.Response(status=503)
        found.asked += request.path == "/ui/data"
        return await handler(request)

    app = web.Application(middlewares=[counting])
    app.add_routes(Ui(Pictures(at, time.monotonic), open_to_all=False).routes())
    runner = web.AppRunner(app, shutdown_timeout=0.2)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    found.url = f"http://127.0.0.1:{runner.addresses[0][1]}/ui"
    yield found
    await runner.cleanup()


@pytest.fixture
async def page(browser: str, site: Site) -> AsyncIterator[Page]:
    """The page, with its first data; it asks for nothing else and has no complaints."""
    async with browse(browser) as opened:
        await opened.visit(site.url)
        await until(opened, "document.querySelectorAll('#grid .card').length > 0")
        yield opened
        errors = [one for one in opened.errors if "503" not in one]
        assert errors == []
        asked = [one for one in opened.requests if not one.startswith("data:")]
        assert set(asked) == {site.url, f"{site.url}/data"}


async def until(page: Page, expression: str) -> None:
    """Wait for the page."""
    while not await page.value(expression):  # noqa: ASYNC110
        await asyncio.sleep(0.05)


async def test_every_state_is_drawn(page: Page) -> None:
    """Signs, words and the gap where a group ends; nothing needs scrolling to the side."""
    signs = await page.value(
        "[...document.querySelectorAll('#grid .card')].map(card => card.textContent)"
    )
    assert signs == ["■", "1", "■", "·", "▚1", "\u00d7"]
    assert await page.value("document.querySelectorAll('#grid td.gap').length") == 1
    words = await page.value("document.getElementById('card/other/gpu-1').ariaLabel")
    assert words.endswith("closed by gpu.quadrant.dev/unhealthy:NoSchedule")
    assert "6 cards on 2 nodes: 1 free, 4 in use, 1 closed" in await page.value(
        "document.getElementById('total').textContent"
    )
    assert await page.value("document.documentElement.scrollWidth <= window.innerWidth")


async def test_capacity_is_told_by_model(page: Page, site: Site) -> None:
    """What there is, can be given, is given; a bar with the parts of the memory, in words too."""
    cells = "[...document.querySelectorAll('#models tr')].map(row => [...row.cells].map({}))"
    (row,) = await page.value(cells.format("cell => cell.textContent"))
    assert row[:5] == ["H100", "6", "5", "4", "1"]
    label = await page.value("document.querySelector('#models .bar').ariaLabel")
    assert "80.0 GiB closed" in label
    parts = "[...document.querySelectorAll('#models .bar span')].map(one => one.offsetWidth)"
    whole = await page.value("document.querySelector('#models .bar').clientWidth")
    assert sum(await page.value(parts)) == pytest.approx(whole, abs=4)
    site.hold("late", "gpu-3", on="hopper")
    await until(page, "document.querySelector('#models tr').cells[3].textContent === '5'")


async def test_it_is_live(page: Page, site: Site) -> None:
    """A new claim shows by itself, and what had the focus keeps it."""
    await page.value("document.getElementById('card/hopper/gpu-3').focus()")
    site.hold("late", "gpu-3", on="hopper")
    await until(page, "document.getElementById('card/hopper/gpu-3').textContent === '■'")
    assert await page.value("document.activeElement.id") == "card/hopper/gpu-3"
    assert await page.value("!!document.getElementById('claim/ns/late')")


async def test_what_has_not_changed_is_not_sent(page: Page, site: Site) -> None:
    """The second answer is a 304, and the page says that it is live all the same."""
    await page.value("window.first = document.querySelector('#grid .card')")
    before = site.asked
    while site.asked < before + 2:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    assert await page.value("window.first.isConnected")
    assert "live" in await page.value("document.getElementById('fresh').textContent")


async def test_a_controller_that_is_away_is_told(page: Page, site: Site) -> None:
    """The old picture stays, marked as old; it comes back by itself."""
    site.is_down = True
    await until(page, "document.getElementById('fresh').className.includes('late')")
    said = await page.value("document.getElementById('fresh').textContent")
    assert "no answer from the controller" in said
    assert await page.value("document.querySelectorAll('#grid .card').length") == 6
    site.is_down = False
    await until(page, "!document.getElementById('fresh').className.includes('late')")


async def test_the_keyboard_reaches_everything(page: Page) -> None:
    """Tab to the cards, arrows among them, Enter to the claim, its link back to the card."""
    for _ in range(10):
        await page.press("Tab")
        if await page.value("document.activeElement.matches('#grid .card')"):
            break
    assert (await page.value(FOCUSED)).startswith("hopper, GPU 0")
    assert (await page.value(DETAILS)).startswith(await page.value(FOCUSED))
    assert "ns/whole" in await page.value(DETAILS)
    await page.press("ArrowRight")
    assert (await page.value(FOCUSED)).startswith("hopper, GPU 1")
    await page.press("ArrowDown")
    assert (await page.value(FOCUSED)).startswith("other, GPU 1")
    await page.press("ArrowUp")
    await page.press("Enter")
    assert await page.value("document.activeElement.id") == "claim/ns/share"
    marked = "[...document.querySelectorAll('#grid .marked')].map(card => card.id)"
    assert await page.value(marked) == ["card/hopper/gpu-1"]


async def test_claims_nodes_and_cards_lead_to_each_other(page: Page) -> None:
    """Claim to card, card to claim, node to its claims; an instance leads to its card."""
    click = "document.querySelector('[id=\"claim/ns/{}\"] a[data-to^=card]').click()"
    await page.value(click.format("whole"))
    assert await page.value("document.activeElement.id") == "card/hopper/gpu-0"
    await page.value("document.querySelector('#details a').click()")
    assert await page.value("document.activeElement.id") == "claim/ns/whole"
    await page.value(click.format("part"))
    assert await page.value("document.activeElement.id") == "card/other/gpu-0"
    await page.value("document.querySelector('[id=\"claim/ns/share\"] a[data-to^=node]').click()")
    said = await page.value(DETAILS)
    assert said.startswith("hopper: 1 of 4 cards free; claims:")
    assert "ns/share" in said
    assert "ns/whole" in said


async def test_an_address_leads_to_its_target(browser: str, site: Site) -> None:
    """A link that somebody sends opens with the claim."""
    async with browse(browser) as opened:
        await opened.visit(f"{site.url}#claim%2Fns%2Fshare")
        await until(opened, "document.activeElement.id === 'claim/ns/share'")


async def test_filters(page: Page) -> None:
    """Both lists; a link into what is filtered away brings it back."""
    await page.value("document.getElementById('claims-filter').focus()")
    await page.write("pending")
    rows = "[...document.querySelectorAll('#rows tr')].map(row => row.id)"
    assert await page.value(rows) == ["claim/ns/waits"]
    assert await page.value("document.getElementById('claims-found').textContent") == "1 of 4"
    await page.value("document.getElementById('card/hopper/gpu-1').focus()")
    await page.value("document.querySelector('#details a').click()")
    assert await page.value("document.activeElement.id") == "claim/ns/share"
    await page.value("document.getElementById('nodes-filter').focus()")
    await page.write("other")
    assert await page.value("document.querySelectorAll('#grid tr').length") == 1


async def test_names_are_text(page: Page, site: Site) -> None:
    """Whoever may name a pod cannot run a script in an administrator's browser."""
    made = proposed(claim("evil", request()), picked("gpu-3", node="hopper"), node="hopper")
    made["status"]["reservedFor"] = [{"resource": "pods", "name": XSS, "uid": "e"}]
    site.at.put_claim(convert(ResourceClaim, made), now=0.0)
    await until(page, "!!document.getElementById('claim/ns/evil')")
    assert XSS in await page.value("document.getElementById('claim/ns/evil').textContent")
    assert await page.value("document.querySelectorAll('img').length") == 0
    assert await page.value("document.title") == "Quadrant"


async def test_without_colours_and_in_the_dark(page: Page) -> None:
    """States differ in sign and border; text has the contrast of WCAG AA in both schemes."""
    looks = await page.value(
        "[...document.querySelectorAll('#grid .card')].map(card => {"
        " const style = getComputedStyle(card);"
        " return [card.className.trim(), style.borderTopStyle, style.borderTopWidth]; })"
    )
    by_state = {state: (style, width) for state, style, width in looks}
    assert len(set(by_state.values())) == len(by_state) == 5
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await page.send("Emulation.setEmulatedMedia", features=features)
        for selector in ("body", ".soft", "#grid td.numbers", "#rows td"):
            ink = await page.value(f"getComputedStyle(document.querySelector('{selector}')).color")
            paper = await page.value("getComputedStyle(document.body).backgroundColor")
            assert contrast(ink, paper) >= 4.5, (scheme, selector)
