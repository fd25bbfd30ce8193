"""How many pods a second get a node and a card, with Quadrant and without.

A real control plane, nodes without kubelets, clients without limits that matter. The reference is
the stock scheduler with the same manifests, and neither our controller nor our webhooks there. Both
are measured twice, in the order stock, Quadrant, Quadrant, stock: neither has the quieter half.
"""

import asyncio
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from driver.admission.configuration import COMMIT_CONFIGURATION, PODS_CONFIGURATION
from driver.kube.informer import Informer
from driver.kube.rest import Rest
from driver.kube.session import open_session
from driver.kube.store import Event, Upsert
from driver.model.core import Pod
from driver.wire.patch import MERGE_PATCH
from hack.benchmarks.figures import Figure, Section, spread
from hack.benchmarks.fleet import Fleet, node
from hack.benchmarks.pods import NAMESPACE, pod, template
from hack.benchmarks.process import cpu_time
from hack.benchmarks.workloads import Json
from hack.deployment import REPOSITORY, Deployment

NAME = "bench"
ROUNDS = (False, True, True, False)
_API = "/apis/resource.k8s.io/v1"
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_CLAIMS = f"{_API}/namespaces/{NAMESPACE}/resourceclaims"
_QPS = 1000
_AT_ONCE = 16
_ALL = "all of them"
_WITHIN_S = 300.0


class Batch(msgspec.Struct, frozen=True):
    """One batch of pods; all in seconds.

    How long all of it took, each pod's way to its node, and the CPU time of each process.
    """

    took: float
    each: tuple[float, ...]
    cpu: dict[str, float]


def measure(*, nodes: int, pods: int) -> Section:
    """Batches of so many pods, each on the empty cluster."""
    with _cluster() as state, tempfile.TemporaryDirectory(prefix="qb-") as folder:
        batches = asyncio.run(_batches(Deployment(state, Path(folder)), Fleet(nodes), pods))
    title = f"{pods} pods of one whole card on {nodes} nodes x 8 GPUs, Kubernetes"
    return Section(f"{title} {state['kubernetes']}", "the stock scheduler", _figures(pods, batches))


def _figures(pods: int, batches: list[tuple[bool, Batch]]) -> tuple[Figure, ...]:
    with_us = [batch for ours, batch in batches if ours]
    stock = [batch for ours, batch in batches if not ours]
    return (
        Figure(
            name="pods a second",
            unit="pods/s",
            value=_rate(pods, with_us),
            reference=_rate(pods, stock),
        ),
        Figure(
            name="from a pod's creation to its node",
            unit="ms",
            value=spread([one for batch in with_us for one in batch.each]),
            reference=spread([one for batch in stock for one in batch.each]),
        ),
        *(
            Figure(
                name=f"CPU time a pod, {name}",
                unit="ms",
                value=_cpu(pods, with_us, name),
                reference=_cpu(pods, stock, name),
            )
            for name in (*with_us[0].cpu, _ALL)
        ),
    )


def _cpu(pods: int, batches: list[Batch], name: str) -> float:
    """Milliseconds of one process for each pod, or of all of them."""
    seconds = [
        spent for batch in batches for part, spent in batch.cpu.items() if name in (part, _ALL)
    ]
    return 1000 * sum(seconds) / (pods * len(batches))


def _rate(pods: int, batches: list[Batch]) -> float:
    return pods * len(batches) / sum(batch.took for batch in batches)


async def _batches(deployment: Deployment, fleet: Fleet, pods: int) -> list[tuple[bool, Batch]]:
    async with open_session(deployment.state["kubeconfig"]) as session:
        rest = Rest(session)
        deployment.apply_file(REPOSITORY / "deviceclasses" / "gpu.yaml")
        await _furnish(rest, fleet)
        numbers = itertools.count()
        # The first batch warms everything up; it does not count.
        parts = {part["name"]: part["process"]["pid"] for part in deployment.state["components"]}
        await _batch(rest, [f"p{next(numbers)}" for _ in range(pods // 4)], parts)
        batches = []
        for ours in ROUNDS:
            names = [f"p{next(numbers)}" for _ in range(pods)]
            async with _quadrant(deployment) if ours else _stock():
                ours_too = {"Quadrant's controller": deployment.controller.pid} if ours else {}
                batch = await _batch(rest, names, parts | ours_too)
            batches.append((ours, batch))
            who = "Quadrant" if ours else "stock"
            print(f"  {pods} pods, {who}: {batch.took:.1f} s", file=sys.stderr, flush=True)
        return batches


@asynccontextmanager
async def _quadrant(deployment: Deployment) -> AsyncIterator[None]:
    await asyncio.to_thread(deployment.up)
    try:
        yield
    finally:
        await asyncio.to_thread(
            deployment.remove_webhooks, COMMIT_CONFIGURATION, PODS_CONFIGURATION
        )
        await asyncio.to_thread(deployment.down)


@asynccontextmanager
async def _stock() -> AsyncIterator[None]:
    yield


async def _batch(rest: Rest, names: list[str], processes: dict[str, int]) -> Batch:
    """Create all, wait until all have a node, delete all and their claims."""
    before = {part: cpu_time(pid) for part, pid in processes.items()}
    created: dict[str, float] = {}
    bound: dict[str, float] = {}

    def seen(event: Event[Pod]) -> None:
        if isinstance(event, Upsert) and event.object.spec.node_name:
            bound.setdefault(event.object.metadata.name, time.monotonic())

    async def create(name: str) -> None:
        created[name] = time.monotonic()
        await rest.create(_PODS, msgspec.json.encode(pod(name)))

    watching = asyncio.create_task(Informer(rest, _PODS, Pod, on_event=seen).run())
    try:
        await _all(create, names)
        await _until(lambda: len(bound) == len(names), f"{len(names)} pods to have a node")
        spent = {part: cpu_time(pid) - before[part] for part, pid in processes.items()}
    finally:
        watching.cancel()
    await _clear(rest, names)
    return Batch(
        max(bound.values()) - min(created.values()),
        tuple(bound[name] - created[name] for name in names),
        spent,
    )


async def _clear(rest: Rest, names: list[str]) -> None:
    async def delete(name: str) -> None:
        await rest.delete(f"{_PODS}/{name}", params={"gracePeriodSeconds": "0"})

    await _all(delete, names)
    async with asyncio.timeout(_WITHIN_S):
        while await _count(rest, _CLAIMS):  # noqa: ASYNC110 # the controller-manager deletes them
            await asyncio.sleep(0.5)


async def _count(rest: Rest, path: str) -> int:
    return sum([len(page.items or ()) async for page in rest.pages(path)])


async def _until(met: Callable[[], bool], what: str) -> None:
    ends = time.monotonic() + _WITHIN_S
    while not met():
        if time.monotonic() > ends:
            raise TimeoutError(f"waited {_WITHIN_S:.0f} s for {what}")
        await asyncio.sleep(0.02)


async def _furnish(rest: Rest, fleet: Fleet) -> None:
    async def put(name: str) -> None:
        item = node(name)
        await rest.create("/api/v1/nodes", msgspec.json.encode(item))
        status = msgspec.json.encode({"status": item["status"]})
        await rest.patch(f"/api/v1/nodes/{name}/status", status, MERGE_PATCH)

    async def publish(item: Json) -> None:
        await rest.create(f"{_API}/resourceslices", msgspec.json.encode(item))

    await _all(put, fleet.names)
    await _all(publish, list(fleet.slices()))
    await rest.create(
        f"{_API}/namespaces/{NAMESPACE}/resourceclaimtemplates", msgspec.json.encode(template())
    )


async def _all(do: Callable[[Any], Any], items: Iterable[Any]) -> None:
    """Do it for every item, some at a time."""
    waiting = iter(items)

    async def work() -> None:
        for item in waiting:
            await do(item)

    await asyncio.gather(*(work() for _ in range(_AT_ONCE)))


@contextmanager
def _cluster() -> Iterator[dict[str, Any]]:
    _hack_cluster("up", "--control-plane-only", "--qps", str(_QPS))
    try:
        yield json.loads(_hack_cluster("status", "-o", "json"))
    finally:
        _hack_cluster("down")


def _hack_cluster(*arguments: str) -> str:
    command, *options = arguments
    done = subprocess.run(
        [str(REPOSITORY / "hack" / "cluster"), command, "--name", NAME, *options],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout
