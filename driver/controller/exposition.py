"""The controller's state as Prometheus reads it: worked out when somebody asks, never in between.

Cards are counted by `driver.controller.census`, which a task keeps up to date, so that a scrape
takes about a millisecond however large the cluster is.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from typing import Any, Never

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from driver.controller.census import Census, Tally
from driver.controller.cluster import Cluster
from driver.controller.term import Term
from driver.kube.informer import Informer

# A node of eight cards takes some ten microseconds to count.
_NODES_A_STEP = 16
_EVERY_S = 1.0


async def keep_counting(census: Census) -> Never:
    """Have the census follow the changes for ever, a few nodes at a time."""
    while True:  # noqa: ASYNC110 # nobody waits for it
        await asyncio.sleep(0 if not census.refresh(_NODES_A_STEP) else _EVERY_S)


class StateCollector(Collector):
    """Gauges of what this replica knows; every replica has them all."""

    def __init__(
        self,
        cluster: Cluster,
        census: Census,
        term: Term,
        informers: Iterable[Informer[Any]],
        *,
        clock: Callable[[], float],
    ) -> None:
        self._cluster = cluster
        self._census = census
        self._term = term
        self._informers = tuple(informers)
        self._clock = clock

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """All series, as of now."""
        yield from self._process()
        yield from self._cards()
        yield from self._watches()

    def _process(self) -> Iterator[GaugeMetricFamily]:
        build = GaugeMetricFamily("quadrant_build_info", "Always 1.", labels=["version"])
        build.add_metric([version("quadrant-dra")], 1)
        yield build
        yield GaugeMetricFamily(
            "quadrant_leader",
            "Whether this replica answers commits.",
            value=float(self._term.refusal(self._clock()) is None),
        )
        yield GaugeMetricFamily(
            "quadrant_answers_outstanding",
            "Answers given whose allocation has not been seen yet.",
            value=float(self._cluster.ledger.outstanding()),
        )

    def _cards(self) -> Iterator[GaugeMetricFamily]:
        cards = GaugeMetricFamily("quadrant_gpus", "GPUs by state.", labels=["model", "state"])
        memory = GaugeMetricFamily(
            "quadrant_gpu_memory_bytes", "Memory of GPUs by state.", labels=["model", "state"]
        )
        fragmentation = GaugeMetricFamily(
            "quadrant_fragmentation_ratio",
            "Part of the free GPU memory that is on GPUs of which a part is taken.",
            labels=["model"],
        )
        for model, tally in sorted(self._census.by_model().items()):
            for state, value in _cards(tally).items():
                cards.add_metric([model, state], value)
            for state, value in _memory(tally).items():
                memory.add_metric([model, state], value)
            fragmentation.add_metric([model], tally.fragmentation)
        largest = GaugeMetricFamily(
            "quadrant_largest_free_group",
            "Most free GPUs of one node that reach each other over NVLink, or share the node.",
            labels=["model"],
        )
        for model, size in sorted(self._census.largest_groups().items()):
            largest.add_metric([model], size)
        yield from (cards, memory, fragmentation, largest)

    def _watches(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        restarts = CounterMetricFamily(
            "quadrant_watch_restarts", "Watches that ended.", labels=["resource", "reason"]
        )
        silence = GaugeMetricFamily(
            "quadrant_watch_silence_seconds",
            "Time since the API server was last heard; a bookmark comes about every minute.",
            labels=["resource"],
        )
        for informer in self._informers:
            resource = informer.path.rsplit("/", 1)[-1]
            for reason, number in sorted(informer.restarts.items()):
                restarts.add_metric([resource, reason], number)
            if informer.heard_at is not None:
                silence.add_metric([resource], self._clock() - informer.heard_at)
        yield from (restarts, silence)


def _cards(tally: Tally) -> dict[str, float]:
    return {
        "physical": tally.physical,
        "allocatable": tally.allocatable,
        "committed": tally.committed,
    }


def _memory(tally: Tally) -> dict[str, float]:
    return {
        "physical": tally.memory,
        "committed": tally.memory_committed,
        "free": tally.free,
        "free_whole": tally.free_whole,
    }
