"""Cards that an operator has closed, by the annotation on the Node."""

import asyncio
from typing import Any

import pytest

from driver.node.cordon import cordoned
from driver.node.settings import NodeSettings
from tests.kube.apiserver import ApiServer
from tests.node.builders import NODE
from tests.node.health.test_reports import fault, tainted
from tests.node.test_plugin import EVENTS, folder, server, serving, settings
from tests.node.test_publish import slices, until

__all__ = ["folder", "server", "settings"]

CLOSED = ("gpu.quadrant.dev/cordoned", "", "NoSchedule")


def annotate(server: ApiServer, value: str | None) -> None:
    """Write the annotation, as `quadrant cordon` does."""
    annotations = {"other": "kept"} | ({"quadrant.dev/cordoned": value} if value else {})
    node = {"metadata": {"name": NODE, "annotations": annotations}}
    server.put("/api/v1/nodes", node)


@pytest.mark.parametrize(
    ("text", "names"),
    [("", ()), ("gpu-1", ("gpu-1",)), (" gpu-1 ,gpu-3,,gpu-1", ("gpu-1", "gpu-3"))],
)
def test_the_annotation(text: str, names: tuple[str, ...]) -> None:
    """Written by people too."""
    assert cordoned(text) == names


async def test_cards_are_closed_and_opened(server: ApiServer, settings: NodeSettings) -> None:
    """While the plugin runs; nothing else of the node matters."""
    async with serving(server, settings):
        await until(lambda: len(slices(server)) == 1)
        annotate(server, "gpu-1,gpu-3")
        await until(lambda: tainted(server) == {"gpu-1": [CLOSED], "gpu-3": [CLOSED]})
        annotate(server, "gpu-3")
        await until(lambda: tainted(server) == {"gpu-3": [CLOSED]})
        annotate(server, None)
        await until(lambda: tainted(server) == {})


async def test_a_restart_opens_nothing(server: ApiServer, settings: NodeSettings) -> None:
    """Not even for a moment: the slices stay as they are, with the time of the taint."""
    annotate(server, "gpu-1")
    written: list[Any] = []

    def note(_old: Any, new: Any) -> Any:
        written.append([len(item.get("taints", ())) for item in new["spec"]["devices"]])
        return new

    server.objects.admission["/apis/resource.k8s.io/v1/resourceslices"] = note
    async with serving(server, settings):
        await until(lambda: len(slices(server)) == 1)
    async with serving(server, settings):
        await asyncio.sleep(0.5)
    assert written == [[0, 1, 0, 0]]


async def test_a_closed_card_that_is_ill_as_well(server: ApiServer, settings: NodeSettings) -> None:
    """Each taint goes by itself."""
    annotate(server, "gpu-1")
    async with serving(server, settings):
        fault(settings, "gpu-1 remap")
        ill = ("gpu.quadrant.dev/unhealthy", "remap", "NoSchedule")
        await until(lambda: tainted(server) == {"gpu-1": [CLOSED, ill]})
        annotate(server, None)
        await until(lambda: tainted(server) == {"gpu-1": [ill]})


async def test_a_name_that_is_no_card_is_told_on_the_node(
    server: ApiServer, settings: NodeSettings
) -> None:
    """With those that there are; the others are closed all the same."""
    annotate(server, "gpu-1,gpu-7")
    async with serving(server, settings):
        await until(lambda: tainted(server) == {"gpu-1": [CLOSED]})
        await until(lambda: len(server.objects.in_collection(EVENTS)) == 1)
    [event] = server.objects.in_collection(EVENTS)
    assert (event["reason"], event["regarding"]["kind"]) == ("UnknownCard", "Node")
    assert "names gpu-7" in event["note"]
    assert "gpu-0, gpu-1, gpu-2, gpu-3" in event["note"]
