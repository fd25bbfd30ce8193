"""The plugin's metrics, read from a running one."""

import asyncio
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from prometheus_client.parser import text_string_to_metric_families

from driver.node.errors import NodeError
from driver.node.run import NodePlugin
from driver.node.settings import NodeSettings
from tests.kube.apiserver import ApiServer
from tests.node import test_plugin as plugin
from tests.node.builders import NODE, claim, ref, result
from tests.node.kubelet import register
from tests.node.test_publish import slices, until

Series = dict[tuple[str, ...], float]


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    """A cluster with the node in it."""
    async with ApiServer() as running:
        running.put("/api/v1/nodes", {"metadata": {"name": NODE, "uid": "node-uid"}})
        yield running


@pytest.fixture
def settings() -> Iterator[NodeSettings]:
    """A plugin of four T4 that tells its metrics; in a folder with a short path, for sockets."""
    with socket.socket() as probe, tempfile.TemporaryDirectory(prefix="q") as folder:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        probe.close()
        yield NodeSettings(
            node_name=NODE,
            simulate="4xT4",
            plugins_dir=f"{folder}/p",
            registry_dir=f"{folder}/r",
            cdi_dir=f"{folder}/c",
            metrics_port=port,
        )


async def read(settings: NodeSettings) -> Series:
    """All series: the name, then the labels' values but the UUID, in order of their names."""
    url = f"http://127.0.0.1:{settings.metrics_port}/metrics"
    async with ClientSession() as session, session.get(url) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        text = await answer.text()
    return {
        (sample.name, *(value for name, value in sorted(sample.labels.items()) if name != "UUID")):
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }  # fmt: skip


def serves(settings: NodeSettings) -> bool:
    """Whether metrics can be read yet."""
    with socket.socket() as probe:
        return probe.connect_ex((settings.metrics_host, settings.metrics_port)) == 0


async def test_what_a_node_does_is_counted(server: ApiServer, settings: NodeSettings) -> None:
    """Claims prepared and refused, registration, slices; and every device with what is held."""
    share = result("gpu-1", "gpu", memory="4Gi", cores="10", share="s-1")
    whole = result("gpu-1", "gpu")
    plugin.put(server, claim(0, share))
    plugin.put(server, claim(1, whole))
    async with (
        plugin.serving(server, settings),
        register(Path(settings.registry_dir)) as kubelet,
    ):
        answers: Any = await kubelet.prepare(ref(0))
        assert not next(iter(answers.values())).error
        refused: Any = await kubelet.prepare(ref(1))
        assert next(iter(refused.values())).error
        await until(lambda: serves(settings) and bool(slices(server)))
        found = await read(settings)
        assert found["quadrant_node_claim_seconds_count", "prepare", "done"] == 1
        assert found["quadrant_node_claim_seconds_count", "prepare", "failed"] == 1
        assert found["quadrant_node_double_uses_refused_total",] == 1
        assert found["quadrant_node_registered",] == 1
        assert found["quadrant_device_info", "gpu-1", "1", "Tesla T4", "gpu"] == 1
        assert found["quadrant_device_claims", "gpu-1"] == 1
        assert found["quadrant_device_memory_held_bytes", "gpu-1"] == 4 * 1024**3
        assert found["quadrant_device_cores_held", "gpu-1"] == 10
        assert found["quadrant_device_claims", "gpu-0"] == 0
        await kubelet.unprepare(ref(0))
        assert (await read(settings))["quadrant_device_claims", "gpu-1"] == 0


async def test_an_address_that_is_taken_is_told(server: ApiServer, settings: NodeSettings) -> None:
    """In a sentence that names it."""
    with socket.socket() as other:
        other.bind((settings.metrics_host, settings.metrics_port))
        other.listen()
        running = NodePlugin(settings)
        with pytest.raises(NodeError, match=f"127.0.0.1:{settings.metrics_port}"):
            await running.serve(lambda: plugin.connected(server), asyncio.Event())
