"""The kubelet's DRAResourceHealth service, in both versions: translates, and knows no more."""

from collections.abc import AsyncIterator
from types import ModuleType

import grpc.aio

from driver._proto import (
    dra_health_v1_pb2,
    dra_health_v1_pb2_grpc,
    dra_health_v1alpha1_pb2,
    dra_health_v1alpha1_pb2_grpc,
)
from driver.node.health.bulletin import Bulletin, DeviceHealth

# As the kubelet knows them; 1.34 to 1.36 speak the older one only.
HEALTH_SERVICES = ("v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth")

# The kubelet cuts longer ones off.
_MESSAGE_MAX = 1024


class HealthService:
    """DRAResourceHealth in one version; `messages` are the generated messages of that version."""

    def __init__(self, messages: ModuleType, bulletin: Bulletin, *, pool: str) -> None:
        self._messages = messages
        self._bulletin = bulletin
        self._pool = pool

    async def NodeWatchResources(  # noqa: N802  (the service's name)
        self, _request: object, _context: grpc.aio.ServicerContext[object, object]
    ) -> AsyncIterator[object]:
        """All devices each time, until the plugin ends."""
        async for devices in self._bulletin.read():
            told = [self._device(device) for device in devices]
            yield self._messages.NodeWatchResourcesResponse(devices=told)

    def _device(self, device: DeviceHealth) -> object:
        messages = self._messages
        return messages.DeviceHealth(
            device=messages.DeviceIdentifier(pool_name=self._pool, device_name=device.device),
            health=messages.HealthStatus.Value(device.status.upper()),
            last_updated_time=int(device.known_at),
            message=device.message[:_MESSAGE_MAX],
        )


def add_health(server: grpc.aio.Server, bulletin: Bulletin, *, pool: str) -> None:
    """Have `server` answer for both versions."""
    v1 = HealthService(dra_health_v1_pb2, bulletin, pool=pool)
    v1alpha1 = HealthService(dra_health_v1alpha1_pb2, bulletin, pool=pool)
    dra_health_v1_pb2_grpc.add_DRAResourceHealthServicer_to_server(v1, server)
    dra_health_v1alpha1_pb2_grpc.add_DRAResourceHealthServicer_to_server(v1alpha1, server)
