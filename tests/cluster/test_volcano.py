"""Volcano beside kube-scheduler: its commits pass our hook like kube-scheduler's.

Volcano is built from its Go module, which takes about ten minutes on two cores: only on request.
Its Kubernetes libraries (1.34) cannot place shares well, so that the cards here are whole ones.
"""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from driver.model import names
from hack.schedulers import volcano
from tests.cluster.site import Site
from tests.cluster.test_other_schedulers import FIRST, healthy, owners
from tests.cluster.webhook import AFTER_OURS, stranger
from tests.cluster.workloads import Object, container, made_from, pod, request, template

WANTED = "QUADRANT_VOLCANO"
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get(WANTED), reason=f"builds Volcano: set {WANTED}=1"),
    pytest.mark.usefixtures("running_volcano"),
]

# Whole ones; those of the first node are two a NUMA node.
CARDS = {"t4": "4xA100-SXM4-40GB", "a10g": "4xA10G"}
USUAL = {"t4": "4xT4", "a10g": "4xA10G"}
GROUP = "scheduling.k8s.io/group-name"


@pytest.fixture(scope="module")
def running_volcano(whole_site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Volcano runs, and all cards are whole ones."""
    site, folder = whole_site, Path(tmp_path_factory.mktemp("volcano"))
    programs = volcano.parts(site.state, folder)
    for file in volcano.definitions():
        site.deployment.apply_file(file)
    for node, cards in CARDS.items():
        site.replace_cards(node, cards, shareable=False)
    try:
        for part, health in programs.values():
            part.start()
            site.wait(f"{part.name}", lambda health=health: healthy(health))  # type: ignore[misc]
        yield
        assert not [part.tail() for part, _ in programs.values() if part.crashed]
    finally:
        for part, _ in programs.values():
            part.stop()
        for node, cards in USUAL.items():
            site.replace_cards(node, cards)


def card(name: str, scheduler: str = volcano.NAME, policy: str = "compact") -> Object:
    """A pod with a whole card.

    It asks for some CPU too: Volcano counts a pod without such requests as ready in its gang.
    """
    return pod(
        name,
        container(claims=[{"name": "gpu"}], requests={"cpu": "10m"}),
        claims={"gpu": made_from("card")},
        annotations={names.NODE_POLICY: "none", names.GPU_POLICY: policy},
        schedulerName=scheduler,
    )


def tried(site: Site) -> Callable[[str], bool]:
    """Whether Volcano has looked at a pod: it would fit, or not, and its gang is not ready."""
    return lambda name: site.condition(name)[0] in {"Schedulable", "Unschedulable"}


def test_picks_are_replaced(site: Site) -> None:
    """Volcano takes the next card; the second one of `spread` is on the other NUMA node.

    This comes first: cards that were released a moment ago are not swapped in.
    """
    site.api.create("templates", template("card", request()))
    for name in ("one", "two"):
        wanted = card(name, policy="spread")
        wanted["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "t4"}
        site.run(wanted)
    assert site.devices_of("one") == [("t4", "gpu-0")]
    assert site.devices_of("two") == [("t4", "gpu-2")]


def test_both_schedulers_fill_the_nodes(site: Site) -> None:
    """12 pods for 8 cards; what goes is followed, so that Volcano's book is right afterwards."""
    site.api.create("templates", template("card", request()))
    for number in range(12):
        scheduler = (FIRST, volcano.NAME)[number % 2]
        site.api.create("pods", card(f"burst-{number}", scheduler))
    site.wait("all cards to be taken", lambda: len(owners(site)) == 8)
    site.running(*owners(site))
    for _ in range(4):
        before = owners(site)
        site.delete(next(iter(before)))
        site.wait("a follower", lambda: len(owners(site)) == 8)
        site.running(*(owners(site).keys() - before.keys()))
    leavers = list(owners(site))[:2]
    site.delete(*leavers)
    site.run(card("last-1"), card("last-2"))
    assert len({device for name in owners(site) for device in site.devices_of(name)}) == 8


def test_gang(site: Site) -> None:
    """Eight pods that start together or not at all: not before the eighth card is free."""
    site.api.create("templates", template("card", request()))
    site.run(card("in-the-way", FIRST))
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "default"},
        "spec": {"minMember": 8},
    }
    site.deployment.apply(group)
    try:
        members = [f"member-{number}" for number in range(8)]
        for name in members:
            member = card(name)
            member["metadata"]["annotations"][GROUP] = "gang"
            site.api.create("pods", member)
        site.wait("the gang to wait", lambda: all(map(tried(site), members)))
        assert set(owners(site)) == {"in-the-way"}
        site.delete("in-the-way")
        site.running(*members)
    finally:
        site.deployment.kubectl("delete", "podgroup", "gang")


def test_refusal_is_tried_again(site: Site) -> None:
    """A commit that is refused (403) leaves nothing in Volcano's book, and is soon made again."""
    site.api.create("templates", template("card", request()))
    refusals: list[float] = []

    def refuse_twice(_: str) -> str | None:
        refusals.append(time.monotonic())
        return "try again" if len(refusals) <= 2 else None

    with stranger(site.api, AFTER_OURS, refuse_twice):
        site.run(card("refused"))
    assert len(refusals) == 3
    site.run(*(card(f"rest-{number}") for number in range(7)))
