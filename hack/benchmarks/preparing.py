"""How long the node plugin takes to prepare and unprepare claims: real gRPC over a unix socket.

The claims come from a fake API server in this process. The reference is a gRPC server that does
nothing, asked in the same ways in the same run: the plugin reads the claim from the API server and
writes to the disk, so fsync is in the figures.
"""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import msgspec

from hack.benchmarks.figures import Figure, Section, spread
from hack.benchmarks.plugin import Claims, Kubelet, claims, cluster, nothing, plugin


class Way(msgspec.Struct, frozen=True):
    """How the kubelet asks: so many claims in one call, so many calls at a time."""

    name: str
    together: int = 1
    parallel: int = 1

    def calls(self, asked: Claims) -> list[Claims]:
        """The claims of each call."""
        starts = range(0, len(asked), self.together)
        return [asked[start : start + self.together] for start in starts]


WAYS = (
    Way("one at a time"),
    Way("50 calls at a time", parallel=50),
    Way("ten claims a call", together=10),
)


def measure(count: int) -> Section:
    """Every claim is prepared and unprepared once in each of the ways."""
    figures = asyncio.run(_measured(count))
    title = f"prepare and unprepare {count} claims, a call"
    return Section(title, "a gRPC server that does nothing", figures)


async def _measured(count: int) -> tuple[Figure, ...]:
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="qb-") as name:
        folder = Path(name)
        async with cluster(folder) as api:
            asked = claims(api, count)
            async with nothing(folder) as (idle, _), plugin(api, folder) as (real, _):
                # The first calls open files and connections.
                await _both_ways(real, WAYS[0], asked[:10])
                await _both_ways(idle, WAYS[0], asked[:10])
                for way in WAYS:
                    value = await _both_ways(real, way, asked)
                    reference = await _both_ways(idle, way, asked)
                    figures += _figures(way, value, reference)
                    if way is WAYS[0]:
                        figures.append(_growth(value["prepare"]))
    return tuple(figures)


def _figures(
    way: Way, value: dict[str, list[float]], reference: dict[str, list[float]]
) -> Iterator[Figure]:
    for what, seconds in value.items():
        yield Figure(
            name=f"{what}, {way.name}",
            unit="ms",
            value=spread(seconds),
            reference=spread(reference[what]),
        )


def _growth(seconds: list[float]) -> Figure:
    """The last tenth of the claims, with all others held, beside the first, with hardly any."""
    part = max(1, len(seconds) // 10)
    return Figure(
        name=f"the same with {len(seconds) - part} held; reference: with none",
        unit="ms",
        value=spread(seconds[-part:]),
        reference=spread(seconds[:part]),
    )


async def _both_ways(kubelet: Kubelet, way: Way, asked: Claims) -> dict[str, list[float]]:
    calls = way.calls(asked)
    return {
        "prepare": await _timed(kubelet.prepare, calls, way.parallel),
        "unprepare": await _timed(kubelet.unprepare, calls, way.parallel),
    }


async def _timed(
    call: Callable[[Claims], Awaitable[None]], calls: list[Claims], parallel: int
) -> list[float]:
    """Seconds of each call."""
    turns = asyncio.Semaphore(parallel)

    async def one(asked: Claims) -> float:
        async with turns:
            begin = time.perf_counter()
            await call(asked)
            return time.perf_counter() - begin

    return list(await asyncio.gather(*(one(asked) for asked in calls)))
