"""The page of a simulation in a real browser: by mouse, by keyboard, without colour, on paper."""

import base64
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.cli.browser import Page, browse, chromium, running

pytestmark = pytest.mark.browser
FOCUSED = "document.activeElement.getAttribute('aria-label')"
DETAILS = "document.getElementById('details').textContent"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The browser that all tests share."""
    program = chromium()
    if program is None:
        pytest.skip("no Chromium: install it (apt-get install chromium), or run this as root")
    with running(program, tmp_path_factory.mktemp("browser")) as address:
        yield address


@pytest.fixture
async def page(browser: str, html: Path) -> AsyncIterator[Page]:
    """The page, opened; it may have nothing to complain of, and may have asked for itself only."""
    async with browse(browser) as opened:
        await opened.open(html)
        yield opened
        assert opened.errors == []
        # The filter that takes the colours away is a data: address of the browser's own.
        asked = [one for one in opened.requests if not one.startswith("data:image/svg+xml,")]
        assert asked == [html.as_uri()]


async def test_everything_is_in_sight_and_nothing_is_cut_off(page: Page) -> None:
    """Three pictures of ten cards; the window needs no scrolling to the side."""
    assert await page.value("document.querySelectorAll('table.cards .card').length") == 30
    assert await page.value("document.documentElement.scrollWidth <= window.innerWidth")
    assert "train-" in await page.value("document.querySelector('.pods').innerText")


async def test_the_keyboard_reaches_every_card(page: Page) -> None:
    """Tab goes from picture to picture, arrows from card to card; what has focus is told."""
    for _ in range(10):
        await page.press("Tab")
        if await page.value("document.activeElement.matches('table.cards .card')"):
            break
    assert await page.value(FOCUSED) == "t4, GPU 0, Tesla T4: free, 15.0 GiB"
    assert await page.value(DETAILS) == await page.value(FOCUSED)
    await page.press("ArrowRight")
    assert (await page.value(FOCUSED)).startswith("t4, GPU 1")
    await page.press("ArrowDown")
    assert (await page.value(FOCUSED)).startswith("hopper, GPU 1")
    await page.press("ArrowLeft")
    await page.press("ArrowUp")
    await page.press("ArrowUp")
    assert (await page.value(FOCUSED)).startswith("t4, GPU 0")
    await page.press("Tab")
    assert await page.value("document.activeElement.closest('table').ariaLabel") == (
        "Cards, compact/compact"
    )


async def test_cards_and_pods_find_each_other(page: Page) -> None:
    """A card marks its pods; the link of a pod goes to its card."""
    await page.value("document.querySelector('.pods a').click()")
    target = await page.value("decodeURIComponent(location.hash.slice(1))")
    assert await page.value("document.activeElement.id") == target
    marked = await page.value(
        "[...document.querySelectorAll('tr.marked')].map(row => row.dataset.cards)"
    )
    assert marked
    assert all(target in cards.split() for cards in marked)


async def test_rows_can_be_filtered(page: Page) -> None:
    """What does not match is away, and the number is said."""
    await page.value("document.getElementById('filter').focus()")
    await page.write("waits")
    visible = await page.value(
        "[...document.querySelectorAll('tr[data-cards]')].filter(row => row.offsetParent)"
        ".map(row => row.innerText)"
    )
    assert visible
    assert all("waits" in row for row in visible)
    said = await page.value("document.getElementById('found').textContent")
    assert said == f"{len(visible)} of 12 rows"


async def test_without_colours_states_differ_in_sign_and_border(page: Page) -> None:
    """In grey, each state still looks like no other."""
    await page.send("Emulation.setEmulatedVisionDeficiency", type="achromatopsia")
    looks = await page.value(
        "[...document.querySelectorAll('table.cards .card')].map(card => {"
        " const style = getComputedStyle(card);"
        " return [card.className.trim(), isNaN(card.textContent) ? card.textContent : 'number',"
        "         style.borderTopStyle, style.borderTopWidth]; })"
    )
    by_state = {state: (sign, style, width) for state, sign, style, width in looks}
    assert set(by_state) == {"card free", "card shared", "card whole"}
    assert len({sign for sign, _, _ in by_state.values()}) == 3
    assert len({(style, width) for _, style, width in by_state.values()}) == 3


async def test_in_the_dark_text_stays_readable(page: Page) -> None:
    """Ink and paper change places; contrast is at least that of WCAG AA."""
    for scheme in ("light", "dark"):
        await page.send(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        for selector in ("body", ".soft"):
            ink = await page.value(f"getComputedStyle(document.querySelector('{selector}')).color")
            paper = await page.value("getComputedStyle(document.body).backgroundColor")
            assert contrast(ink, paper) >= 4.5, (scheme, selector)


async def test_on_paper_everything_is_there(page: Page) -> None:
    """No field to type in, no hint about keys; signs stay, whatever the printer does with fills."""
    await page.send("Emulation.setEmulatedMedia", media="print")
    assert await page.value("document.getElementById('filter').offsetParent") is None
    assert await page.value("getComputedStyle(document.getElementById('details')).display") == (
        "none"
    )
    whole = "getComputedStyle(document.querySelector('.card.whole')).color"
    assert await page.value(whole) == "rgb(0, 0, 0)"
    assert await page.value(
        "[...document.querySelectorAll('.pods .why')].every(cell => cell.offsetHeight > 0)"
    )
    printed = await page.send("Page.printToPDF", printBackground=False)
    assert base64.b64decode(printed["data"]).startswith(b"%PDF-")


def contrast(one: str, other: str) -> float:
    """The ratio that WCAG defines, of two colours as rgb(r, g, b)."""
    lights = sorted(map(_luminance, (one, other)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").rstrip(")").split(",")]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
