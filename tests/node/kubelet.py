"""A kubelet as a plugin meets it: finds its socket, registers it, prepares and unprepares."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import grpc.aio

from driver._proto import (
    dra_health_v1_pb2,
    dra_health_v1_pb2_grpc,
    dra_health_v1alpha1_pb2,
    dra_health_v1alpha1_pb2_grpc,
    dra_v1_pb2,
    dra_v1_pb2_grpc,
    dra_v1beta1_pb2,
    dra_v1beta1_pb2_grpc,
    pluginregistration_v1_pb2,
    pluginregistration_v1_pb2_grpc,
)
from driver.node.claims import ClaimRef

# What kubelets call the services in the plugin's list, and which modules speak them.
SERVICES: dict[str, tuple[ModuleType, ModuleType]] = {
    "v1.DRAPlugin": (dra_v1_pb2, dra_v1_pb2_grpc),
    "v1beta1.DRAPlugin": (dra_v1beta1_pb2, dra_v1beta1_pb2_grpc),
}

HEALTH: dict[str, tuple[ModuleType, ModuleType]] = {
    "v1.DRAResourceHealth": (dra_health_v1_pb2, dra_health_v1_pb2_grpc),
    "v1alpha1.DRAResourceHealth": (dra_health_v1alpha1_pb2, dra_health_v1alpha1_pb2_grpc),
}


class Kubelet:
    """One registered plugin, seen from the kubelet."""

    def __init__(self, info: object, channel: grpc.aio.Channel, service: str) -> None:
        self.info = info
        self._channel = channel
        self._messages, stubs = SERVICES[service]
        self._stub = stubs.DRAPluginStub(channel)

    async def prepare(self, *claims: ClaimRef) -> dict[str, object]:
        """NodePrepareResources; the answers by UID."""
        request = self._messages.NodePrepareResourcesRequest(claims=self._claims(claims))
        return dict((await self._stub.NodePrepareResources(request)).claims)

    async def unprepare(self, *claims: ClaimRef) -> dict[str, object]:
        """NodeUnprepareResources; the answers by UID."""
        request = self._messages.NodeUnprepareResourcesRequest(claims=self._claims(claims))
        return dict((await self._stub.NodeUnprepareResources(request)).claims)

    async def health(self, service: str = "v1.DRAResourceHealth") -> AsyncIterator[dict[str, Any]]:
        """NodeWatchResources: every report, the devices by name."""
        messages, stubs = HEALTH[service]
        stub = stubs.DRAResourceHealthStub(self._channel)
        async for report in stub.NodeWatchResources(messages.NodeWatchResourcesRequest()):
            yield {found.device.device_name: found for found in report.devices}

    def _claims(self, claims: Iterable[ClaimRef]) -> list[object]:
        claim = self._messages.Claim
        return [claim(namespace=c.namespace, name=c.name, uid=c.uid) for c in claims]


@asynccontextmanager
async def register(
    registry: Path, known: Iterable[str] = tuple(SERVICES), *, error: str = ""
) -> AsyncIterator[Kubelet]:
    """Do as the kubelet does with the one socket in its registry folder.

    `known` are the services that this kubelet knows; with `error` it refuses the plugin.
    """
    [socket] = _sockets(registry)
    async with grpc.aio.insecure_channel(f"unix:{socket}") as channel:
        stub = pluginregistration_v1_pb2_grpc.RegistrationStub(channel)
        info = await stub.GetInfo(pluginregistration_v1_pb2.InfoRequest())
        service = next(name for name in info.supported_versions if name in tuple(known))
        status = pluginregistration_v1_pb2.RegistrationStatus(
            plugin_registered=not error, error=error
        )
        await stub.NotifyRegistrationStatus(status)
    async with grpc.aio.insecure_channel(f"unix:{info.endpoint}") as channel:
        yield Kubelet(info, channel, service)


def _sockets(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_socket()]
