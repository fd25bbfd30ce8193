"""More pods than the cards hold, all at once: full, never too full, and nothing is forgotten."""

import signal
from collections import Counter

import pytest

from tests.cluster import history
from tests.cluster.site import Site
from tests.cluster.workloads import made_from, pod, request, share, template

pytestmark = pytest.mark.cluster

# 7500Mi fit twice into a T4 and three times into an A10G; each node has four.
PLACES = {"t4": 8, "a10g": 12}


def burst(site: Site, count: int) -> list[str]:
    """Create so many pods, each with a share of its own; their names."""
    site.api.create("templates", template("share", request(**share())))
    names = [f"burst-{number}" for number in range(count)]
    for name in names:
        site.api.create("pods", pod(name, claims={"gpu": made_from("share")}))
    return names


def owners(site: Site) -> dict[str, str]:
    """The pods whose claims have devices, and on which node."""
    return {
        claim["metadata"]["ownerReferences"][0]["name"]: history.results(claim)[0]["pool"]
        for claim in site.allocated()
    }


def unschedulable(site: Site, name: str) -> bool:
    """Whether the scheduler has tried a pod and says that it fits nowhere."""
    return site.condition(name)[0] == "Unschedulable"


def test_burst_fills_every_place_and_the_rest_follows(site: Site) -> None:
    """Of 34 pods exactly 20 get a share; each that goes makes room for exactly one more."""
    names = burst(site, 34)
    places = sum(PLACES.values())
    site.wait("all places to be taken", lambda: len(owners(site)) == places)
    holders = owners(site)
    assert Counter(holders.values()) == PLACES
    site.running(*holders)
    waiting = set(names) - set(holders)
    site.wait(
        "the others to be unschedulable",
        lambda: all(unschedulable(site, name) for name in waiting),
    )
    assert set(owners(site)) == set(holders)
    leavers = sorted(holders, key=lambda name: (names.index(name) % 2, holders[name]))
    for leaver in leavers[: len(waiting)]:
        site.delete(leaver)
        site.wait("one more pod to be placed", lambda: len(owners(site)) == places)
        (follower,) = set(owners(site)) - set(holders)
        assert follower in waiting
        holders = owners(site)
    site.running(*holders)
    assert waiting <= set(holders)


def test_controller_killed_in_mid_burst(site: Site) -> None:
    """What was under way is neither lost nor given twice, and the new controller does the rest."""
    controller = site.deployment.controller
    names = burst(site, sum(PLACES.values()))
    site.wait("the first few to be allocated", lambda: len(owners(site)) >= 3)
    controller.stop(signal.SIGKILL)
    assert len(owners(site)) < len(names), "all were placed before the kill: this tests nothing"
    site.deployment.start_controller()
    site.running(*names)
    assert Counter(owners(site).values()) == PLACES
