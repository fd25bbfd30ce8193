"""The data of the page, made from what the controller knows, without holding up any decision.

It is made only when somebody asks, at most once a second and for at most a tenth of the time, in
steps of a millisecond between which the event loop does what else there is to do. So a picture may
have been overtaken in part while it was made.
"""

import asyncio
import gzip
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Callable

import msgspec

from driver.cli.fleet import claims, nodes
from driver.cli.fleet.claims import Told
from driver.cli.fleet.holders import Holders, enter
from driver.cli.fleet.nodes import State, Sum
from driver.cli.fleet.report import API_VERSION, Total
from driver.controller.cluster import Cluster
from driver.model.errors import QuadrantError
from driver.model.resourceclaim import ResourceClaim

KIND = "ClusterPicture"
LEAST_S = 1.0
# A picture that took long is not made again so soon.
PATIENCE = 10.0
STEP_S = 0.001
_LEVEL = 1


class Picture(msgspec.Struct, frozen=True):
    """One picture as it is sent: gzipped JSON, and a tag that is another for another picture."""

    body: bytes
    tag: str


class Pictures:
    """Makes pictures; any number of callers may wait for the same one.

    `clock` is a monotonic clock in seconds.
    """

    def __init__(self, cluster: Cluster, clock: Callable[[], float]) -> None:
        self._cluster = cluster
        self._clock = clock
        self._latest: Picture | None = None
        self._again_at = 0.0
        self._making: asyncio.Task[Picture] | None = None

    async def latest(self) -> Picture:
        """The newest picture there may be by now."""
        if self._latest is not None and self._clock() < self._again_at:
            return self._latest
        if self._making is None:
            self._making = asyncio.create_task(self._make())
            self._making.add_done_callback(self._made)
        # One caller who goes away does not take it from the others.
        return await asyncio.shield(self._making)

    def _made(self, task: asyncio.Task[Picture]) -> None:
        self._making = None
        if not task.cancelled() and task.exception() is None:
            self._latest = task.result()

    async def _make(self) -> Picture:
        begun = self._clock()
        steps = _Steps(self._clock)
        parts = [part async for part in _Parts(self._cluster, steps).all()]
        worked = steps.worked()
        picture = await asyncio.to_thread(_packed, parts)
        self._again_at = max(begun + LEAST_S, self._clock() + PATIENCE * worked)
        return picture


class _Steps:
    """Lets others go on after each millisecond of work, and knows how much work it was."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since = clock()
        self._worked = 0.0

    async def pause(self) -> None:
        """A place where others may go on."""
        passed = self._clock() - self._since
        if passed >= STEP_S:
            self._worked += passed
            await asyncio.sleep(0)
            self._since = self._clock()

    def worked(self) -> float:
        """Seconds of work so far."""
        return self._worked + self._clock() - self._since


class _Parts:
    """The JSON of a picture, piece by piece."""

    def __init__(self, cluster: Cluster, steps: _Steps) -> None:
        self._cluster = cluster
        self._steps = steps
        self._encoder = msgspec.json.Encoder()

    async def all(self) -> AsyncIterator[bytes]:
        """All pieces, in order."""
        cluster = self._cluster
        state = State(
            driver=cluster.driver,
            inventory=cluster.inventory,
            nodes=cluster.nodes,
            claims=tuple(cluster.claims.values()),
            pods=tuple(cluster.pods.values()),
        )
        made = Sum()
        head = {"apiVersion": API_VERSION, "kind": KIND, "driver": cluster.driver}
        yield self._encoder.encode(head)[:-1] + b',"nodes":['
        async for piece in self._nodes(state, made):
            yield piece
        yield b'],"claims":['
        async for piece in self._claims(state):
            yield piece
        for pod in state.pods:
            made.wait(pod)
            await self._steps.pause()
        total: Total = made.total()
        yield b'],"total":' + self._encoder.encode(total) + b"}"

    async def _nodes(self, state: State, made: Sum) -> AsyncIterator[bytes]:
        held: Holders = {}
        for claim in state.claims:
            enter(held, claim)
            await self._steps.pause()
        awaited: Counter[str] = Counter()
        for pod in state.pods:
            awaited[nodes.nomination(pod)] += 1
            await self._steps.pause()
        comma = b""
        for name in sorted(state.nodes):
            node = state.nodes.get(name)
            row = None if node is None else nodes.row(state, node, held, awaited)
            if row is not None:
                made.add(row)
                yield comma + self._encoder.encode(row)
                comma = b","
            await self._steps.pause()

    async def _claims(self, state: State) -> AsyncIterator[bytes]:
        cluster = self._cluster
        comma = b""
        for claim in state.claims:
            if claims.is_ours(claim, cluster.driver, cluster.classes):
                row = claims.row(claim, cluster.inventory, cluster.driver, self._tell)
                yield comma + self._encoder.encode(row)
                comma = b","
            await self._steps.pause()

    def _tell(self, claim: ResourceClaim) -> Told:
        """The policies; scores are told in events, and nobody keeps them."""
        try:
            found = self._cluster.policies(claim)
        except QuadrantError:
            return Told(policy="unknown")
        return Told(policy=f"{found.node.value}/{found.gpu.value}")


def _packed(parts: list[bytes]) -> Picture:
    body = b"".join(parts)
    # Without a time in it, so that equal pictures are equal.
    return Picture(gzip.compress(body, _LEVEL, mtime=0), hashlib.sha256(body).hexdigest()[:32])
