"""How the kubelet learns of this plugin: the Registration service.

The kubelet watches its registry folder and calls whatever socket appears there.
"""

from pathlib import PurePosixPath

import grpc.aio
import structlog

from driver._proto import pluginregistration_v1_pb2, pluginregistration_v1_pb2_grpc
from driver.node.health.service import HEALTH_SERVICES
from driver.node.kubelet.service import SUPPORTED_SERVICES
from driver.node.meter import NOBODY, Meter

_PLUGIN_TYPE = "DRAPlugin"

log = structlog.get_logger(__name__)


class RegistrationService:
    """Tells the kubelet the driver's name, its socket and the versions that it serves."""

    def __init__(self, driver: str, endpoint: PurePosixPath, *, meter: Meter = NOBODY) -> None:
        self._driver = driver
        self._endpoint = endpoint
        self._meter = meter
        # What the kubelet said last; None before it has said anything.
        self.registered: bool | None = None

    async def GetInfo(  # noqa: N802  (the service's name)
        self,
        _request: pluginregistration_v1_pb2.InfoRequest,
        _context: grpc.aio.ServicerContext[object, object],
    ) -> pluginregistration_v1_pb2.PluginInfo:
        """Who we are."""
        return pluginregistration_v1_pb2.PluginInfo(
            type=_PLUGIN_TYPE,
            name=self._driver,
            endpoint=str(self._endpoint),
            supported_versions=SUPPORTED_SERVICES + HEALTH_SERVICES,
        )

    async def NotifyRegistrationStatus(  # noqa: N802  (the service's name)
        self,
        request: pluginregistration_v1_pb2.RegistrationStatus,
        _context: grpc.aio.ServicerContext[object, object],
    ) -> pluginregistration_v1_pb2.RegistrationStatusResponse:
        """What the kubelet made of it."""
        self.registered = request.plugin_registered
        self._meter.registered(accepted=self.registered)
        if self.registered:
            log.info("registered with the kubelet", driver=self._driver)
        else:
            log.error("the kubelet refused the plugin", driver=self._driver, error=request.error)
        return pluginregistration_v1_pb2.RegistrationStatusResponse()


def add_registration(server: grpc.aio.Server, service: RegistrationService) -> None:
    """Have `server` answer as `service`."""
    pluginregistration_v1_pb2_grpc.add_RegistrationServicer_to_server(service, server)
