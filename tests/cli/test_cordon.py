"""`cordon` and `uncordon`: what is written on the node, and what is refused."""

import pytest
from aiohttp import web

from driver.cli.cordon import CordonError
from driver.cli.usage import UsageError
from driver.model.names import CORDONED
from tests.cli.livecluster import NODES, LiveCluster
from tests.controller.commits import Json, gpu
from tests.kube.objects import Refusal


def cordoned(live: LiveCluster, node: str = "a") -> str | None:
    """The annotation as it is now."""
    annotations: Json = live.server.get(NODES, node)["metadata"].get("annotations") or {}
    return annotations.get(CORDONED)


async def test_cards_are_closed_and_opened(live: LiveCluster) -> None:
    """By name or index, in the order of their numbers; the last one takes the annotation away."""
    live.node("a", [gpu(index) for index in range(11)], annotations={"team": "x"})
    done = await live.run("cordon", "a/gpu-10", "a/2")
    assert done.stdout.splitlines() == ["node/a gpu-10 cordoned", "node/a gpu-2 cordoned"]
    assert cordoned(live) == "gpu-2,gpu-10"
    done = await live.run("cordon", "a/gpu-2")
    assert done.stdout == "node/a gpu-2 already cordoned\n"
    await live.run("uncordon", "a/2")
    assert cordoned(live) == "gpu-10"
    done = await live.run("uncordon", "a/gpu-2")
    assert done.stdout == "node/a gpu-2 already uncordoned\n"
    await live.run("uncordon", "a/gpu-10")
    assert live.server.get(NODES, "a")["metadata"]["annotations"] == {"team": "x"}


async def test_what_is_so_already_is_not_written(live: LiveCluster) -> None:
    """Nothing changes, so nobody has to look at a new version of the node."""
    live.node("a", [gpu(0)], annotations={CORDONED: "gpu-0"})
    await live.run("cordon", "a/gpu-0")
    assert not [line for line in live.server.requests if line.startswith("PATCH")]


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("b/gpu-0", "node 'b' does not exist"),
        ("a/gpu-7", "node a has no card 'gpu-7'; its cards are: gpu-0, gpu-1"),
    ],
)
async def test_what_does_not_exist_is_refused(
    live: LiveCluster, target: str, sentence: str
) -> None:
    """A typing error must not pass for a card that is closed."""
    live.node("a", [gpu(0), gpu(1)])
    done = await live.run("cordon", target)
    assert done.exit_code == 1
    assert isinstance(done.exception, CordonError)
    assert sentence in str(done.exception)
    assert cordoned(live) is None


@pytest.mark.parametrize("target", ["a", "a/", "/gpu-0", "a/b/c"])
async def test_a_target_that_names_no_card(live: LiveCluster, target: str) -> None:
    """The whole node is `kubectl cordon`'s business."""
    done = await live.run("cordon", target)
    assert isinstance(done.exception, UsageError)


async def test_a_card_that_is_gone_can_be_opened(live: LiveCluster) -> None:
    """It was taken out while it was closed; the wish must not stay for its successor."""
    live.node("a", [gpu(0)], annotations={CORDONED: "gpu-3,gpu-0"})
    assert (await live.run("uncordon", "a/gpu-3")).exit_code == 0
    assert cordoned(live) == "gpu-0"


async def test_another_writer_in_between_loses_nothing(live: LiveCluster) -> None:
    """The version that was read is a precondition; after a conflict it is read again."""
    live.node("a", [gpu(0), gpu(1)])
    first = [True]
    live.server.faults.append(lambda request: _touch(live, request.method, first))
    assert (await live.run("cordon", "a/gpu-0")).exit_code == 0
    assert cordoned(live) == "gpu-0,gpu-1"


def _with(node: Json, cards: str) -> Json:
    metadata: Json = dict(node["metadata"])
    metadata["annotations"] = {**(metadata.get("annotations") or {}), CORDONED: cards}
    return metadata


def _touch(live: LiveCluster, method: str, first: list[bool]) -> None:
    """Before the first write arrives, somebody else closes another card."""
    if method == "PATCH" and first:
        first.clear()
        node = live.server.get(NODES, "a")
        live.server.put(NODES, node | {"metadata": _with(node, "gpu-1")})


async def test_the_right_that_is_missing_is_named(live: LiveCluster) -> None:
    """Who may only look is told what is needed."""
    live.node("a", [gpu(0)])
    refusal = Refusal(403, "Forbidden", 'cannot patch resource "nodes"').status()

    def read_only(request: web.Request) -> web.Response | None:
        return web.json_response(refusal, status=403) if request.method == "PATCH" else None

    live.server.faults.append(read_only)
    done = await live.run("cordon", "a/gpu-0")
    assert done.exit_code == 1
    assert "this command needs the right to patch nodes" in str(done.exception)
