"""A node plugin in a process of its own, on a fake API server, and the kubelet that calls it."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import grpc.aio

from driver._proto import dra_v1_pb2, dra_v1_pb2_grpc
from driver.model.names import DRIVER
from driver.node.settings import NodeSettings
from hack.benchmarks.fleet import CARDS
from hack.benchmarks.workloads import NAMESPACE, Json
from hack.deployment import Part
from tests.kube.apiserver import ApiServer

NODE = "bench"
_CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
Claims = Sequence[dra_v1_pb2.Claim]


class Kubelet:
    """Calls a plugin over its socket; raises when the plugin refuses a claim."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = dra_v1_pb2_grpc.DRAPluginStub(channel)

    async def prepare(self, claims: Claims) -> None:
        """One call for these claims."""
        request = dra_v1_pb2.NodePrepareResourcesRequest(claims=claims)
        answer = await self._stub.NodePrepareResources(request, wait_for_ready=True)
        _check({uid: one.error for uid, one in answer.claims.items()})

    async def unprepare(self, claims: Claims) -> None:
        """One call for these claims."""
        request = dra_v1_pb2.NodeUnprepareResourcesRequest(claims=claims)
        answer = await self._stub.NodeUnprepareResources(request, wait_for_ready=True)
        _check({uid: one.error for uid, one in answer.claims.items()})


def _check(errors: dict[str, str]) -> None:
    for uid, error in errors.items():
        if error:
            raise RuntimeError(f"the plugin refused claim {uid} of the benchmark: {error}")


def claims(api: ApiServer, count: int) -> list[dra_v1_pb2.Claim]:
    """So many claims in the cluster, each with a small share of one of the node's cards."""
    made = []
    for number in range(count):
        item = _claim(number)
        api.put(_CLAIMS, item)
        metadata = item["metadata"]
        made.append(
            dra_v1_pb2.Claim(namespace=NAMESPACE, name=metadata["name"], uid=metadata["uid"])
        )
    return made


def _claim(number: int) -> Json:
    result = {
        "request": "gpu",
        "driver": DRIVER,
        "pool": NODE,
        "device": f"gpu-{number % CARDS}",
        "shareID": f"share-{number}",
        "consumedCapacity": {"memory": "1Mi", "cores": "0"},
    }
    exactly = {"deviceClassName": DRIVER, "allocationMode": "ExactCount", "count": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"namespace": NAMESPACE, "name": f"c{number}", "uid": f"uid-{number}"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
        "status": {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": "bench", "uid": f"pod-{number}"}],
        },
    }


def kubeconfig(api: ApiServer, folder: Path) -> Path:
    """A file by which a process finds the fake API server."""
    found = {
        "current-context": "bench",
        "clusters": [{"name": "bench", "cluster": {"server": api.url}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "users": [{"name": "bench", "user": {}}],
    }
    file = folder / "kubeconfig"
    file.write_text(json.dumps(found))
    return file


@asynccontextmanager
async def plugin(api: ApiServer, folder: Path) -> AsyncIterator[tuple[Kubelet, Part]]:
    """The node plugin with eight shareable cards, ready to be called."""
    settings = NodeSettings(node_name=NODE, plugins_dir=f"{folder}/p")
    options = {
        "node-name": NODE,
        "simulate": f"{CARDS}xH100-SXM",
        "kubeconfig": kubeconfig(api, folder),
        "plugins-dir": settings.plugins_dir,
        "registry-dir": folder / "r",
        "cdi-dir": folder / "c",
        "log-level": "warning",
    }
    argv = ["-m", "driver.cli", "node", *(f"--{name}={value}" for name, value in options.items())]
    socket = Path(settings.driver_socket())
    async with _called(argv, socket, folder / "plugin.log") as called:
        yield called


@asynccontextmanager
async def nothing(folder: Path) -> AsyncIterator[tuple[Kubelet, Part]]:
    """The server that does nothing, ready to be called."""
    socket = folder / "nothing.sock"
    argv = ["-m", "hack.benchmarks.nothing", str(socket)]
    async with _called(argv, socket, folder / "nothing.log") as called:
        yield called


@asynccontextmanager
async def _called(argv: list[str], socket: Path, log: Path) -> AsyncIterator[tuple[Kubelet, Part]]:
    with running(Part(log.stem, [sys.executable, *argv], log)) as part:
        while not socket.exists():  # noqa: ASYNC240 # nothing else waits in this process
            if part.crashed:
                raise RuntimeError(f"{part.name} ended:\n{part.tail()}")
            await asyncio.sleep(0.05)
        async with grpc.aio.insecure_channel(f"unix:{socket}") as channel:
            yield Kubelet(channel), part


@contextmanager
def running(part: Part) -> Iterator[Part]:
    """The process from its start to the end of the block."""
    part.start()
    try:
        yield part
    finally:
        part.stop()
