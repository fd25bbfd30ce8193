"""The gRPC health service (`grpc.health.v1`), by which the kubelet probes the plugin's pod.

It is on the driver's socket, and on a port of its own for probes, which know no unix sockets. Two
names are answered: "" says whether the kubelet can still find the plugin, "ready" whether it has.
A loop that hangs does not answer at all.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped]

from driver.node.errors import NodeError
from driver.node.kubelet.registration import RegistrationService
from driver.node.settings import NodeSettings

Checks = Mapping[str, Callable[[], bool]]


def checks(settings: NodeSettings, registration: RegistrationService) -> Checks:
    """What is asked, by the name of the service.

    Sockets that somebody removed come back only with a restart, which a failed liveness probe
    brings about.
    """
    sockets = [Path(settings.driver_socket()), Path(settings.registration_socket())]
    return {
        "": lambda: all(path.is_socket() for path in sockets),
        "ready": lambda: registration.registered is True,
    }


class HealthService(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    """Answers from `checks`, which must not block."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks

    async def Check(  # noqa: N802  (the service's name)
        self,
        request: health_pb2.HealthCheckRequest,
        context: grpc.aio.ServicerContext[object, object],
    ) -> health_pb2.HealthCheckResponse:
        """SERVING or NOT_SERVING; NOT_FOUND for a name that is not answered."""
        check = self._checks.get(request.service)
        if check is None:
            known = ", ".join(map(repr, self._checks))
            await context.abort(
                grpc.StatusCode.NOT_FOUND, f"no service {request.service!r}; known are {known}"
            )
            raise AssertionError
        answer = health_pb2.HealthCheckResponse
        return answer(status=answer.SERVING if check() else answer.NOT_SERVING)


def add_probes(server: grpc.aio.Server, checks: Checks) -> None:
    """Have `server` answer."""
    health_pb2_grpc.add_HealthServicer_to_server(HealthService(checks), server)


async def serve_probes(port: int, checks: Checks) -> grpc.aio.Server:
    """A server of nothing but this on a TCP port; raises `NodeError` when it cannot be bound."""
    server = grpc.aio.server()
    add_probes(server, checks)
    try:
        server.add_insecure_port(f"[::]:{port}")
    except RuntimeError as error:
        raise NodeError(f"probes cannot be served on port {port}: {error}") from error
    await server.start()
    return server
