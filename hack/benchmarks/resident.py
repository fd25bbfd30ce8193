"""How much memory the two processes take: what stays resident (RSS), measured from outside.

The reference is the same process in the same run with nothing to remember: the controller on an
empty cluster, the plugin before its first claim.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from driver.simulator.releases import LATEST
from hack.benchmarks.figures import Figure, Section
from hack.benchmarks.fleet import Fleet, device_class, node
from hack.benchmarks.plugin import claims, cluster, kubeconfig, plugin, running
from hack.benchmarks.process import resident
from hack.deployment import Part, free_port
from tests.kube.apiserver import ApiServer

_API = "/apis/resource.k8s.io/v1"
_LEVEL = 0.95
_READY_WITHIN_S = 120.0


def measure(*, nodes: int, count: int, seed: int) -> Section:
    """The controller of so many nodes, nearly full, and the plugin that holds so many claims."""
    figures = asyncio.run(_measured(nodes, count, seed))
    return Section("resident memory", "the process with nothing to remember", figures)


async def _measured(nodes: int, count: int, seed: int) -> tuple[Figure, ...]:
    fleet = Fleet(nodes)
    full, empty = [await _controller(one, seed) for one in (fleet, Fleet(0))]
    held, idle = await _plugin(count)
    taken = len(fleet.taken(_LEVEL, seed))
    return (
        Figure(
            name=f"controller, {nodes} nodes x 8 GPUs, {taken} claims",
            unit="MiB",
            value=full,
            reference=empty,
        ),
        Figure(name=f"node plugin, {count} claims", unit="MiB", value=held, reference=idle),
    )


async def _controller(fleet: Fleet, seed: int) -> float:
    async with ApiServer() as api:
        _furnish(api, fleet, seed)
        with (
            tempfile.TemporaryDirectory(prefix="qb-") as name,
            running(_controller_part(api, Path(name))) as part,
        ):
            await _ready(part)
            return resident(part.pid)


def _furnish(api: ApiServer, fleet: Fleet, seed: int) -> None:
    api.documents["/version"] = {"gitVersion": f"v{LATEST}.0"}
    kinds = ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices")
    api.documents[_API] = {"resources": [{"name": kind} for kind in kinds]}
    api.put("/api/v1/namespaces", {"metadata": {"name": "default"}})
    api.put(f"{_API}/deviceclasses", device_class())
    for name in fleet.names:
        api.put("/api/v1/nodes", node(name))
    for published in fleet.slices():
        api.put(f"{_API}/resourceslices", published)
    for number, place in enumerate(fleet.taken(_LEVEL, seed), start=1):
        api.put(f"{_API}/resourceclaims", fleet.holder(place, number))


def _controller_part(api: ApiServer, folder: Path) -> Part:
    port = free_port()
    settings = {
        "kubeconfig": kubeconfig(api, folder),
        "namespace": "default",
        "identity": "bench",
        "listen-port": port,
        "webhook-address": f"https://127.0.0.1:{port}",
        "health-port": free_port(),
    }
    options = [f"--{name}={value}" for name, value in settings.items()]
    argv = [sys.executable, "-m", "driver.cli", "controller", *options]
    return Part("controller", argv, folder / "controller.log")


async def _ready(part: Part) -> None:
    """Wait until it serves: all is listed, and what is worked out ahead is there."""
    async with asyncio.timeout(_READY_WITHIN_S):
        while not part.said('"message":"serving"'):
            if part.crashed:
                raise RuntimeError(f"the controller ended:\n{part.tail()}")
            await asyncio.sleep(0.1)


async def _plugin(count: int) -> tuple[float, float]:
    """With so many claims held, and before."""
    with tempfile.TemporaryDirectory(prefix="qb-") as name:
        folder = Path(name)
        async with cluster(folder) as api:
            asked = claims(api, count)
            async with plugin(api, folder) as (kubelet, part):
                await kubelet.unprepare(asked[:1])
                await kubelet.prepare(asked[:1])
                before = resident(part.pid)
                for claim in asked:
                    await kubelet.prepare([claim])
                return resident(part.pid), before
