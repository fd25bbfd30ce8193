"""The two sockets of the plugin: the driver's, and the one by which the kubelet finds it."""

from contextlib import AsyncExitStack
from pathlib import Path

import grpc.aio
import structlog

from driver.node.health.bulletin import Bulletin
from driver.node.health.service import add_health
from driver.node.kubelet.probes import add_probes, checks, serve_probes
from driver.node.kubelet.registration import RegistrationService, add_registration
from driver.node.kubelet.service import Preparing, Unpreparing, add_services
from driver.node.kubelet.sockets import bind, clear_dead
from driver.node.meter import Meter
from driver.node.settings import NodeSettings

# How long calls may go on when the plugin ends.
_GRACE_S = 5.0

log = structlog.get_logger(__name__)


async def listen(
    servers: AsyncExitStack,
    settings: NodeSettings,
    *,
    preparing: Preparing,
    unpreparing: Unpreparing,
    bulletin: Bulletin,
    meter: Meter,
) -> None:
    """Have the driver's socket served before the kubelet is told of it; `servers` ends in reverse.

    Raises `NodeError` when a socket cannot be bound.
    """
    clear_dead(Path(settings.registry_dir), f"{settings.driver}-*reg.sock")
    clear_dead(Path(settings.data_dir()), "dra-*.sock")
    driver = grpc.aio.server()
    add_services(driver, preparing=preparing, unpreparing=unpreparing)
    add_health(driver, bulletin, pool=settings.node_name)
    registration = RegistrationService(settings.driver, settings.driver_socket(), meter=meter)
    probed = checks(settings, registration)
    add_probes(driver, probed)
    bind(driver, Path(settings.driver_socket()))
    await driver.start()
    servers.push_async_callback(driver.stop, _GRACE_S)
    # A stream that goes on would be waited for.
    servers.callback(bulletin.close)
    if settings.probe_port:
        probes = await serve_probes(settings.probe_port, probed)
        servers.push_async_callback(probes.stop, None)
    registrar = grpc.aio.server()
    add_registration(registrar, registration)
    bind(registrar, Path(settings.registration_socket()))
    await registrar.start()
    servers.push_async_callback(registrar.stop, None)
    servers.callback(Path(settings.registration_socket()).unlink, missing_ok=True)
    log.info("serving", driver=settings.driver, node=settings.node_name)
