"""The kubelet's probes of the plugin's pod."""

import asyncio
import socket
from pathlib import Path

import grpc
import grpc.aio
import msgspec
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped]

from driver._proto import dra_v1_pb2, dra_v1_pb2_grpc
from driver.node.errors import NodeError
from driver.node.settings import NodeSettings
from tests.kube.apiserver import ApiServer
from tests.node.kubelet import register
from tests.node.test_plugin import folder, server, serving, settings

__all__ = ["folder", "server", "settings"]

SERVING, NOT_SERVING = 1, 2


async def ask(target: str, service: str = "") -> int:
    """What a probe is told."""
    async with grpc.aio.insecure_channel(target) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        request = health_pb2.HealthCheckRequest(service=service)
        answer: health_pb2.HealthCheckResponse = await stub.Check(request)
        return int(answer.status)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_probes_by_port_and_by_socket(server: ApiServer, settings: NodeSettings) -> None:
    """Ready once the kubelet has registered the plugin; alive while it can be found."""
    port, registration = free_port(), Path(settings.registration_socket())
    probed = msgspec.structs.replace(settings, probe_port=port)
    async with serving(server, probed):
        for target in (f"127.0.0.1:{port}", f"unix:{settings.driver_socket()}"):
            assert (await ask(target), await ask(target, "ready")) == (SERVING, NOT_SERVING)
        async with register(Path(settings.registry_dir)):
            for target in (f"127.0.0.1:{port}", f"unix:{settings.driver_socket()}"):
                assert (await ask(target), await ask(target, "ready")) == (SERVING, SERVING)
        with pytest.raises(grpc.aio.AioRpcError) as told:
            await ask(f"127.0.0.1:{port}", "other")
        assert told.value.code() == grpc.StatusCode.NOT_FOUND
        await asyncio.to_thread(registration.unlink)
        assert await ask(f"127.0.0.1:{port}") == NOT_SERVING


async def test_the_port_serves_nothing_else(server: ApiServer, settings: NodeSettings) -> None:
    """Who reaches the pod over the network must not prepare claims."""
    port = free_port()
    async with serving(server, msgspec.structs.replace(settings, probe_port=port)):
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = dra_v1_pb2_grpc.DRAPluginStub(channel)
            with pytest.raises(grpc.aio.AioRpcError) as told:
                await stub.NodePrepareResources(dra_v1_pb2.NodePrepareResourcesRequest())
        assert told.value.code() == grpc.StatusCode.UNIMPLEMENTED


async def test_a_port_that_is_taken(server: ApiServer, settings: NodeSettings) -> None:
    """Said at the start; the kubelet would wait for probes that are answered by somebody else."""
    with socket.socket(socket.AF_INET6) as taken:
        taken.bind(("::", 0))
        taken.listen()
        port = int(taken.getsockname()[1])
        with pytest.raises(NodeError, match=f"port {port}"):
            async with serving(server, msgspec.structs.replace(settings, probe_port=port)):
                pass
