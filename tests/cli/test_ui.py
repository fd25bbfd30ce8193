"""The data of the controller's page, and who gets it."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from driver.cli.ui.pictures import PATIENCE, Pictures
from driver.cli.ui.server import Ui, needs_local
from driver.controller.cluster import Cluster
from driver.model.resourceclaim import ResourceClaim
from driver.wire.decode import convert
from tests.controller.commits import claim, cluster, gpu, picked, proposed, request
from tests.controller.placements import add_claim, pod

CARDS = [gpu(index, mebi=15360, productName="T4") for index in range(4)]


class Clock:
    """Time that passes when it is looked at, and when somebody says so."""

    def __init__(self, per_look: float = 0.0) -> None:
        self.now = 100.0
        self.per_look = per_look

    def __call__(self) -> float:
        """The time, a little later than before."""
        self.now += self.per_look
        return self.now


def busy() -> Cluster:
    """Two nodes; a claim that has a card, one that waits, and a pod that is gated."""
    at = cluster(a=CARDS, b=CARDS)
    made = proposed(claim("mine", request()), picked("gpu-1", node="b"), node="b")
    at.put_claim(convert(ResourceClaim, made), now=0.0)
    add_claim(at, "waits", request())
    at.put_pod(pod("gated", "waits"))
    return at


def large(count: int) -> Cluster:
    """Many nodes."""
    nodes: dict[str, Any] = {f"n{number:03}": CARDS for number in range(count)}
    return cluster(**nodes)


def read(picture: Any) -> dict[str, Any]:
    """What a browser makes of it."""
    found: dict[str, Any] = json.loads(gzip.decompress(picture.body))
    return found


async def test_the_picture_is_what_the_controller_knows() -> None:
    """Nodes, claims with the policies that hold, and the sum."""
    found = read(await Pictures(busy(), Clock()).latest())
    assert (found["apiVersion"], found["kind"]) == ("quadrant.dev/v1alpha1", "ClusterPicture")
    assert [node["node"] for node in found["nodes"]] == ["a", "b"]
    assert [card["use"] for card in found["nodes"][1]["cards"]] == ["free", "whole", "free", "free"]
    assert found["nodes"][1]["cards"][1]["claims"] == ["ns/mine"]
    by_name = {one["name"]: one for one in found["claims"]}
    assert (by_name["mine"]["node"], by_name["mine"]["policy"]) == ("b", "compact/compact")
    assert by_name["waits"]["state"] == "pending"
    assert (found["total"]["cards"], found["total"]["gated"]) == (8, 1)


async def test_it_is_made_at_most_once_a_second() -> None:
    """Whoever asks in between gets the same, and changes show a second later."""
    at, clock = busy(), Clock()
    pictures = Pictures(at, clock)
    first = await pictures.latest()
    at.put_claim(
        convert(ResourceClaim, proposed(claim("new", request()), picked("gpu-0", node="b"))),
        now=0.0,
    )
    clock.now += 0.9
    assert await pictures.latest() is first
    clock.now += 0.2
    second = await pictures.latest()
    assert second.tag != first.tag
    assert len(read(second)["claims"]) == 3


async def test_nothing_is_made_while_nobody_asks() -> None:
    """No task is left behind either."""
    Pictures(busy(), Clock())
    assert len(asyncio.all_tasks()) == 1


async def test_those_who_ask_at_once_wait_for_one_picture() -> None:
    """Also when one of them goes away."""
    pictures = Pictures(busy(), Clock())
    tasks = [asyncio.create_task(pictures.latest()) for _ in range(3)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    second, third = await asyncio.gather(*tasks[1:])
    assert second is third


async def test_others_go_on_after_every_millisecond() -> None:
    """With 0.3 ms for each look at the clock, a step of work is a few looks long."""
    at = large(200)
    clock = Clock(per_look=0.0003)
    turns = [clock.now]

    async def other() -> None:
        while True:
            await asyncio.sleep(0)
            turns.append(clock.now)

    ticking = asyncio.create_task(other())
    await Pictures(at, clock).latest()
    ticking.cancel()
    gaps = [later - earlier for earlier, later in pairwise(turns)]
    assert max(gaps) < 0.0025
    assert sum(gap > 0 for gap in gaps) > 40


async def test_what_took_long_is_not_made_again_soon() -> None:
    """The work is a tenth of the time at most."""
    at = large(200)
    clock = Clock(per_look=0.002)
    pictures = Pictures(at, clock)
    begun = clock.now
    first = await pictures.latest()
    worked = clock.now - begun
    clock.per_look = 0.0
    at.nodes.pop("n000")
    # Of two looks at the clock, one is for the pause.
    clock.now += 0.3 * PATIENCE * worked
    assert await pictures.latest() is first
    clock.now += PATIENCE * worked
    assert await pictures.latest() is not first


async def test_a_cluster_that_changes_meanwhile() -> None:
    """Nodes and claims may go while the picture is made; what is left is told."""
    at = large(50)
    pictures = Pictures(at, Clock(per_look=0.01))

    async def shrink() -> None:
        for name in [*at.nodes]:
            await asyncio.sleep(0)
            at.remove_node(name)
            at.remove_slice(f"gpu.quadrant.dev-{name}")

    _, picture = await asyncio.gather(shrink(), pictures.latest())
    assert len(read(picture)["nodes"]) < 50


@asynccontextmanager
async def served(*, open_to_all: bool = False) -> AsyncIterator[str]:
    """The page on a free port of the loopback address."""
    app = web.Application()
    app.add_routes(Ui(Pictures(busy(), Clock()), open_to_all=open_to_all).routes())
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_page_and_data_over_http() -> None:
    """The page may load nothing but its data; who has the data is not sent it again."""
    async with served() as url, aiohttp.ClientSession() as session:
        async with session.get(f"{url}/ui") as answer:
            assert answer.status == 200
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]
            text = await answer.text()
        assert "http://" not in text.replace("http://www.w3.org", "")
        assert "https://" not in text
        async with session.get(f"{url}/ui/data") as answer:
            found = await answer.json()
            tag = answer.headers["ETag"]
        assert found["kind"] == "ClusterPicture"
        async with session.get(f"{url}/ui/data", headers={"If-None-Match": tag}) as answer:
            assert answer.status == 304
            assert await answer.read() == b""
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            async with session.request(method, f"{url}/ui/data") as answer:
                assert answer.status == 405


async def test_a_page_of_somebody_else_cannot_ask() -> None:
    """A name that leads to the loopback address is not enough; it has to be localhost."""
    async with served() as url, aiohttp.ClientSession() as session:
        for path, host, status in (
            ("/ui", "evil.example:8080", 403),
            ("/ui/data", "evil.example:8080", 403),
            ("/ui/data", "evil.example", 403),
            ("/ui/data", "localhost:8080", 200),
            ("/ui/data", "localhost", 200),
            ("/ui/data", "[::1]:8080", 200),
        ):
            async with session.get(f"{url}{path}", headers={"Host": host}) as answer:
                assert answer.status == status, host
    headers = {"Host": "quadrant.example"}
    async with (
        served(open_to_all=True) as url,
        aiohttp.ClientSession() as session,
        session.get(f"{url}/ui", headers=headers) as answer,
    ):
        assert answer.status == 200


@pytest.mark.parametrize(
    ("host", "needed"),
    [("127.0.0.1", False), ("0.0.0.0", False), ("::", False), ("localhost", False),  # noqa: S104
     ("10.1.2.3", True), ("fd00::1", True)],
)  # fmt: skip
def test_where_port_forward_arrives(host: str, needed: bool) -> None:
    """A pod's server listens on the pod's address; a forwarded port ends on the loopback one."""
    assert needs_local(host) is needed


async def test_what_did_not_arrive_locally_is_not_answered() -> None:
    """Unless it is allowed: then whoever reaches the port may look."""
    request = make_mocked_request("GET", "/ui/data", headers={"Host": "localhost"})
    assert request.transport is not None
    request.transport.get_extra_info.side_effect = lambda name: ("10.1.2.3", 80)  # type: ignore[attr-defined]
    ui = Ui(Pictures(busy(), Clock()), open_to_all=False)
    with pytest.raises(web.HTTPNotFound, match="Not Found"):
        await ui._data(request)
    assert (await Ui(Pictures(busy(), Clock()), open_to_all=True)._data(request)).status == 200


def test_a_claim_with_an_unknown_policy_is_shown() -> None:
    """Somebody's typing error does not take the page away."""
    at = busy()
    made = claim("odd", request(), annotations={"quadrant.dev/gpu-policy": "tightest"})
    at.put_claim(convert(ResourceClaim, made), now=0.0)
    found = read(asyncio.run(Pictures(at, Clock()).latest()))
    assert {one["name"]: one["policy"] for one in found["claims"]}["odd"] == "unknown"
    assert msgspec.json.encode(found)
