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
from tests.kube.tls import loopback_certificate

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
async def cluster(folder: Path) -> AsyncIterator[ApiServer]:
    """A fake API server, and in the folder the service account by which pods find it."""
    _, tls = loopback_certificate(folder)
    (folder / "token").write_text("bench")
    async with ApiServer(tls=tls) as api:
        api.put("/api/v1/nodes", {"metadata": {"name": NODE, "uid": f"uid-{NODE}"}})
        yield api


def settings(folder: Path) -> NodeSettings:
    """What the plugin in this folder is told."""
    return NodeSettings(
        node_name=NODE,
        simulate=f"{CARDS}xH100-SXM",
        plugins_dir=f"{folder}/p",
        registry_dir=f"{folder}/r",
        cdi_dir=f"{folder}/c",
    )


def part(api: ApiServer, folder: Path) -> Part:
    """The node plugin with eight shareable cards, not started."""
    told = settings(folder)
    options = {
        "node-name": told.node_name,
        "simulate": told.simulate,
        "plugins-dir": told.plugins_dir,
        "registry-dir": told.registry_dir,
        "cdi-dir": told.cdi_dir,
        "log-level": "warning",
    }
    argv = ["-m", "hack.benchmarks.inpod", str(folder), api.url, "node"]
    argv += [f"--{name}={value}" for name, value in options.items()]
    return Part("plugin", [sys.executable, *argv], folder / "plugin.log")


@asynccontextmanager
async def plugin(api: ApiServer, folder: Path) -> AsyncIterator[tuple[Kubelet, Part]]:
    """The node plugin with eight shareable cards, ready to be called."""
    async with _called(part(api, folder), Path(settings(folder).driver_socket())) as called:
        yield called


@asynccontextmanager
async def nothing(folder: Path) -> AsyncIterator[tuple[Kubelet, Part]]:
    """The server that does nothing, ready to be called."""
    socket = folder / "nothing.sock"
    argv = [sys.executable, "-m", "hack.benchmarks.nothing", str(socket)]
    async with _called(Part("nothing", argv, folder / "nothing.log"), socket) as called:
        yield called


@asynccontextmanager
async def _called(wanted: Part, socket: Path) -> AsyncIterator[tuple[Kubelet, Part]]:
    with running(wanted):
        while not socket.exists():  # noqa: ASYNC240 # nothing else waits in this process
            if wanted.crashed:
                raise RuntimeError(f"{wanted.name} ended:\n{wanted.tail()}")
            await asyncio.sleep(0.01)
        async with grpc.aio.insecure_channel(f"unix:{socket}") as channel:
            yield Kubelet(channel), wanted


@contextmanager
def running(part: Part) -> Iterator[Part]:
    """The process from its start to the end of the block."""
    part.start()
    try:
        yield part
    finally:
        part.stop()
