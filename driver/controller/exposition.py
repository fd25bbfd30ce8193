"""The controller's state as Prometheus reads it: worked out when somebody asks, never in between.

Cards are counted by `driver.controller.census`, which a task keeps up to date, so that a scrape
takes about a millisecond however large the cluster is.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import version
from typing import Any, Never

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from driver.controller.census import Census, Tally
from driver.controller.cluster import Cluster
from driver.controller.gates import gated, seconds_of
from driver.controller.term import Term
from driver.kube.informer import Informer

# A node of eight cards takes some ten microseconds to count.
_NODES_A_STEP = 16
_EVERY_S = 1.0
_QUANTILES = (0.5, 0.99, 1)


async def keep_counting(census: Census) -> Never:
    """Have the census follow the changes for ever, a few nodes at a time."""
    while True:  # noqa: ASYNC110 # nobody waits for it
        await asyncio.sleep(0 if not census.refresh(_NODES_A_STEP) else _EVERY_S)


class StateCollector(Collector):
    """Gauges of what this replica knows; every replica has them all.

    `clock` gives monotonic seconds, `wall_clock` those since 1970.
    """

    def __init__(
        self,
        cluster: Cluster,
        census: Census,
        term: Term,
        informers: Iterable[Informer[Any]],
        *,
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
    ) -> None:
        self._cluster = cluster
        self._census = census
        self._term = term
        self._informers = tuple(informers)
        self._clock = clock
        self._wall_clock = wall_clock

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """All series, as of now."""
        yield from self._process()
        yield from self._pods()
        yield from self._cards()
        yield from self._groups()
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

    def _pods(self) -> Iterator[GaugeMetricFamily]:
        waiting = self._cluster.waiting.values()
        behind_gate = sum(map(gated, waiting))
        number = GaugeMetricFamily(
            "quadrant_pods_waiting", "Pods with our devices and without a node.", labels=["stage"]
        )
        number.add_metric(["gated"], behind_gate)
        number.add_metric(["scheduling"], len(waiting) - behind_gate)
        yield number
        age = GaugeMetricFamily(
            "quadrant_pods_waiting_seconds",
            "Age of pods with our devices and without a node; 1 is the oldest.",
            labels=["quantile"],
        )
        # Times of the API server sort as texts; the oldest is the first.
        created = sorted(filter(None, (pod.metadata.creation_timestamp for pod in waiting)))
        for quantile in _QUANTILES:
            age.add_metric([str(quantile)], self._age(created, quantile))
        yield age

    def _age(self, created: list[str], quantile: float) -> float:
        if not created:
            return 0.0
        time = created[int((1 - quantile) * (len(created) - 1))]
        return max(0.0, self._wall_clock() - seconds_of(time))

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
        yield from (cards, memory, fragmentation)

    def _groups(self) -> Iterator[GaugeMetricFamily]:
        largest = GaugeMetricFamily(
            "quadrant_largest_free_group",
            "Most free GPUs of one node that reach each other over NVLink, or share the node.",
            labels=["model"],
        )
        groups = GaugeMetricFamily(
            "quadrant_free_groups",
            "Groups of free GPUs of one node that reach each other over NVLink, or share the node.",
            labels=["model", "size"],
        )
        found = self._census.groups()
        for model in sorted(self._census.by_model()):
            sizes: Mapping[int, int] = found.get(model, {})
            largest.add_metric([model], max(sizes, default=0))
            for size, number in sorted(sizes.items()):
                groups.add_metric([model, str(size)], number)
        yield from (largest, groups)

    def _watches(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        restarts = CounterMetricFamily(
            "quadrant_watch_restarts", "Watches that ended.", labels=["resource", "reason"]
        )
        relists = CounterMetricFamily(
            "quadrant_relists",
            "Lists read anew because a watch had lost its place, or a leader took over.",
            labels=["resource"],
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
            relists.add_metric([resource], max(0, informer.lists - 1))
            if informer.heard_at is not None:
                silence.add_metric([resource], self._clock() - informer.heard_at)
        yield from (restarts, relists, silence)


def _cards(tally: Tally) -> dict[str, float]:
    return {
        "physical": tally.physical,
        "allocatable": tally.allocatable,
        "committed": tally.committed,
    }


def _memory(tally: Tally) -> dict[str, float]:
    return {
        "physical": tally.memory,
        "allocatable": tally.free + tally.memory_committed,
        "committed": tally.memory_committed,
        "free": tally.free,
        "free_whole": tally.free_whole,
    }
