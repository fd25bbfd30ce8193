"""How soon a node plugin is of use after its start, and what it takes while nobody asks for it.

From the start of the process: until the kubelet's GetInfo is answered, and until the slices are
in the API server. The reference is a gRPC server that does nothing, until its first answer.
"""

import asyncio
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import grpc.aio

from driver._proto import pluginregistration_v1_pb2, pluginregistration_v1_pb2_grpc
from hack.benchmarks import plugin
from hack.benchmarks.figures import Figure, Section, spread
from hack.benchmarks.process import cpu_time, resident
from hack.deployment import Part
from tests.kube.apiserver import ApiServer

_SLICES = "/apis/resource.k8s.io/v1/resourceslices"
_STARTS = 10
_IDLE_S = 30.0
_WITHIN_S = 60.0
_LOOK_S = 0.002


def measure() -> Section:
    """Several starts on an empty node, turn by turn with the reference, then a quiet while."""
    figures = asyncio.run(_measured())
    return Section("start of a node plugin", "a gRPC server that does nothing", figures)


async def _measured() -> tuple[Figure, ...]:
    registered, published, reference = [], [], []
    for _ in range(_STARTS):
        first, second = await _start()
        registered.append(first)
        published.append(second)
        reference.append(await _start_of_nothing())
    idle, size = await _idle()
    known = spread(reference)
    return (
        Figure(
            name="until registration answers",
            unit="ms",
            value=spread(registered),
            reference=known,
        ),
        Figure(
            name="until the slices are there", unit="ms", value=spread(published), reference=known
        ),
        Figure(name=f"idle for {_IDLE_S:.0f} s", unit="% of a core", value=idle),
        Figure(name="resident when idle", unit="MiB", value=size),
    )


async def _start() -> tuple[float, float]:
    """Seconds until the kubelet is answered, and until the slices are published."""
    with tempfile.TemporaryDirectory(prefix="qb-") as name:
        folder = Path(name)
        async with plugin.cluster(folder) as api:
            part = plugin.part(api, folder)
            begin = time.perf_counter()
            with plugin.running(part):
                slices = asyncio.create_task(_seen(part, lambda: _published(api)))
                await _answered(part, Path(plugin.settings(folder).registration_socket()))
                answered = time.perf_counter() - begin
                return answered, await slices - begin


async def _start_of_nothing() -> float:
    with tempfile.TemporaryDirectory(prefix="qb-") as name:
        begin = time.perf_counter()
        async with plugin.nothing(Path(name)) as (kubelet, _):
            await kubelet.prepare([])
            return time.perf_counter() - begin


async def _idle() -> tuple[float, float]:
    """Hundredths of a core that a plugin takes when nobody asks it, and its MiB."""
    with tempfile.TemporaryDirectory(prefix="qb-") as name:
        folder = Path(name)
        async with plugin.cluster(folder) as api:
            part = plugin.part(api, folder)
            with plugin.running(part):
                await _seen(part, lambda: _published(api))
                await asyncio.sleep(2)
                before = cpu_time(part.pid)
                await asyncio.sleep(_IDLE_S)
                used = cpu_time(part.pid) - before
                return 100 * used / _IDLE_S, resident(part.pid)


def _published(api: ApiServer) -> bool:
    return bool(api.objects.in_collection(_SLICES))


async def _seen(part: Part, there: Callable[[], bool]) -> float:
    """When it was so."""
    async with asyncio.timeout(_WITHIN_S):
        while not there():
            if part.crashed:
                raise RuntimeError(f"{part.name} ended:\n{part.tail()}")
            await asyncio.sleep(_LOOK_S)
    return time.perf_counter()


async def _answered(part: Part, socket: Path) -> None:
    """As the kubelet does: it watches the folder and calls when the socket appears."""
    await _seen(part, socket.exists)
    async with grpc.aio.insecure_channel(f"unix:{socket}") as channel:
        stub = pluginregistration_v1_pb2_grpc.RegistrationStub(channel)
        call: Coroutine[Any, Any, object] = stub.GetInfo(
            pluginregistration_v1_pb2.InfoRequest(), wait_for_ready=True
        )
        await call
