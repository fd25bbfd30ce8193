"""What Prometheus reads of the controller's state."""

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from driver.controller import exposition
from driver.controller.census import Census
from driver.controller.cluster import Cluster
from driver.controller.exposition import StateCollector, keep_counting
from driver.controller.term import Term
from driver.kube.informer import Informer
from driver.model.resourceclaim import ResourceClaim
from driver.wire.decode import convert
from tests.controller.commits import claim, cluster, gpu, picked, proposed, request
from tests.controller.placements import pod

NOW = 100.0
# 2026-12-01T00:00:00Z
TODAY = 1796083200.0
Read = Callable[..., float | None]


def reads(at: Cluster, census: Census, term: Term, *informers: Informer[Any]) -> Read:
    """A scrape of one series."""
    registry = CollectorRegistry()
    state = StateCollector(
        at, census, term, informers, clock=lambda: NOW, wall_clock=lambda: TODAY + 60
    )
    registry.register(state)
    return lambda name, **labels: registry.get_sample_value(name, labels)


async def test_cards_are_told_by_model_and_state(monkeypatch: Any) -> None:
    """As the census has them, which follows by itself."""
    monkeypatch.setattr(exposition, "_EVERY_S", 0.0)
    at = cluster(a=[gpu(n, mebi=1000, productName="T4") for n in range(4)])
    census = Census(at)
    read = reads(at, census, Term())
    counting = asyncio.create_task(keep_counting(census))
    taken = proposed(claim("c", request(mebi=400)), picked("gpu-0", mebi=400))
    at.put_claim(convert(ResourceClaim, taken), NOW)
    async with asyncio.timeout(5):
        while not read("quadrant_gpus", model="T4", state="committed"):  # noqa: ASYNC110 # as scrapes
            await asyncio.sleep(0)
    counting.cancel()
    assert read("quadrant_gpus", model="T4", state="physical") == 4
    assert read("quadrant_gpus", model="T4", state="allocatable") == 4
    assert read("quadrant_gpus", model="T4", state="committed") == 1
    mib = 1024 * 1024
    assert read("quadrant_gpu_memory_bytes", model="T4", state="committed") == 400 * mib
    assert read("quadrant_gpu_memory_bytes", model="T4", state="free_whole") == 3000 * mib
    assert round(read("quadrant_fragmentation_ratio", model="T4") or 0, 3) == 0.167
    assert read("quadrant_largest_free_group", model="T4") == 3
    assert read("quadrant_free_groups", model="T4", size="3") == 1


def test_who_leads_is_told() -> None:
    """By the same rule by which it answers."""
    at, term = cluster(), Term()
    read = reads(at, Census(at), term)
    assert read("quadrant_leader") == 0
    term.renewed(NOW + 1)
    term.begin(after=NOW)
    assert read("quadrant_leader") == 1


def test_watches_are_told_by_resource() -> None:
    """Why they ended, and for how long the server has said nothing."""
    at = cluster()
    informer: Informer[ResourceClaim] = Informer(
        None,  # type: ignore[arg-type] # nothing is read here
        "/apis/resource.k8s.io/v1/resourceclaims",
        ResourceClaim,
        on_event=lambda _: None,
    )
    read = reads(at, Census(at), Term(), informer)
    assert read("quadrant_watch_silence_seconds", resource="resourceclaims") is None
    informer.restarts["Gone"] += 2
    informer.heard_at = NOW - 7
    assert read("quadrant_watch_restarts_total", resource="resourceclaims", reason="Gone") == 2
    assert read("quadrant_watch_silence_seconds", resource="resourceclaims") == 7
    for lists, relists in ((0, 0), (1, 0), (3, 2)):
        informer.lists = lists
        assert read("quadrant_relists_total", resource="resourceclaims") == relists


def test_pods_that_wait_are_told_with_their_ages() -> None:
    """Those behind our gate and those that the scheduler has not placed; bound ones do not wait."""
    at = cluster()
    read = reads(at, Census(at), Term())
    assert read("quadrant_pods_waiting_seconds", quantile="1") == 0
    for name, second, node in (("a", 0, ""), ("b", 30, ""), ("c", 40, "n1")):
        made = pod(name, gated=name != "b")
        metadata = replace(made.metadata, creation_timestamp=f"2026-12-01T00:00:{second:02}Z")
        at.put_pod(replace(made, metadata=metadata, spec=replace(made.spec, node_name=node)))
    assert read("quadrant_pods_waiting", stage="gated") == 1
    assert read("quadrant_pods_waiting", stage="scheduling") == 1
    assert read("quadrant_pods_waiting_seconds", quantile="1") == 60
    assert read("quadrant_pods_waiting_seconds", quantile="0.5") == 60
    at.remove_pod(next(uid for uid, one in at.pods.items() if one.metadata.name == "a"))
    assert read("quadrant_pods_waiting_seconds", quantile="1") == 30
