"""Pods created and deleted as fast as the machine goes, on a fleet without kubelets."""

import asyncio
import itertools
import random
import time
from collections.abc import Iterable
from typing import Any

import msgspec

from driver.kube.errors import KubeError, NotFound
from driver.kube.rest import Rest
from tests.cluster import fleet

PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
API = "/apis/resource.k8s.io/v1"
# How many places a pod of each kind takes, and how often it is created.
PLACES = {"one": 1, "pair": 2, "native": 1, "share": 1}
MIX = ("one", "one", "native", "native", "pair", "share")
Json = dict[str, Any]


class Fleet:
    """The nodes of a test: some with whole cards, some with cards to share."""

    def __init__(self, rest: Rest, *, whole: int, shared: int) -> None:
        self.rest = rest
        self.whole = [f"w{index:03}" for index in range(whole)]
        self.shared = [f"s{index:03}" for index in range(shared)]

    @property
    def whole_places(self) -> int:
        """How many whole cards there are."""
        return len(self.whole) * fleet.CARDS

    @property
    def shared_places(self) -> int:
        """How many shares fit."""
        return len(self.shared) * fleet.SHARED_CARDS * fleet.PLACES_A_CARD

    async def create(self) -> None:
        """Put nodes, slices, classes and templates into the cluster."""
        slices = [fleet.whole_slice(name) for name in self.whole]
        slices += [fleet.shared_slice(name) for name in self.shared]
        await self._all("/api/v1/nodes", [fleet.node(n) for n in (*self.whole, *self.shared)])
        for name in (*self.whole, *self.shared):
            status = {"status": fleet.node(name)["status"]}
            await self.rest.patch(
                f"/api/v1/nodes/{name}/status",
                msgspec.json.encode(status),
                "application/merge-patch+json",
            )
        await self._all(f"{API}/resourceslices", slices)
        await self._all(f"{API}/deviceclasses", fleet.classes())
        await self._all(f"{API}/namespaces/default/resourceclaimtemplates", fleet.templates())

    async def _all(self, path: str, objects: Iterable[Json]) -> None:
        for item in objects:
            await self.rest.create(path, msgspec.json.encode(item))

    async def pods(self) -> list[Json]:
        """All pods as they are now."""
        return await listed(self.rest, PODS)

    async def claims(self) -> list[Json]:
        """All claims as they are now."""
        return await listed(self.rest, CLAIMS)


async def listed(rest: Rest, path: str) -> list[Json]:
    """All objects of a collection."""
    return [
        msgspec.json.decode(item) async for page in rest.pages(path) for item in page.items or ()
    ]


class Churn:
    """Keeps the demand at `load` times what there is, and never stands still."""

    def __init__(self, fleet: Fleet, *, seed: int, load: float = 1.3) -> None:
        self._rest = fleet.rest
        self._chance = random.Random(seed)  # noqa: S311 # a seed must give the same mix again
        self._wanted = load * (fleet.whole_places + fleet.shared_places)
        self._live: dict[str, str] = {}
        self._demand = 0
        self._names = itertools.count()
        self.created = 0
        self.deleted = 0

    async def run(self, seconds: float, *, workers: int = 8) -> None:
        """Create and delete for so long."""
        ends = time.monotonic() + seconds
        await asyncio.gather(*(self._work(ends) for _ in range(workers)))

    async def _work(self, ends: float) -> None:
        while time.monotonic() < ends:
            try:
                if self._demand < self._wanted:
                    await self._create()
                else:
                    await self._delete()
            except KubeError:
                # The API server is under load on purpose; the next turn tries something else.
                await asyncio.sleep(0.2)

    async def _create(self) -> None:
        kind = self._chance.choice(MIX)
        name = f"{kind}-{next(self._names)}"
        self._demand += PLACES[kind]
        try:
            await create_pod(self._rest, name, kind)
        except KubeError:
            self._demand -= PLACES[kind]
            raise
        self._live[name] = kind
        self.created += 1

    async def _delete(self) -> None:
        if not self._live:
            await asyncio.sleep(0.05)
            return
        name = self._chance.choice(list(self._live))
        kind = self._live.pop(name)
        self._demand -= PLACES[kind]
        await delete_pod(self._rest, name)
        self.deleted += 1


async def create_pod(rest: Rest, name: str, kind: str) -> None:
    """Create one pod."""
    await rest.create(PODS, msgspec.json.encode(fleet.pod(name, kind)))


async def delete_pod(rest: Rest, name: str) -> None:
    """Delete one pod at once: there is no kubelet that would confirm."""
    try:
        await rest.delete(f"{PODS}/{name}", params={"gracePeriodSeconds": "0"})
    except NotFound:
        return


def bound(pods: Iterable[Json]) -> list[Json]:
    """The pods that have a node."""
    return [pod for pod in pods if pod["spec"].get("nodeName")]
