"""Two schedulers on the same nodes: none gives a device twice, and the picks of both are replaced.

The second one is another, unmodified kube-scheduler. Neither knows what the other has chosen before
it is written.
"""

import ssl
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from driver.model import names
from hack.schedulers import second
from tests.cluster import history
from tests.cluster.site import Site
from tests.cluster.workloads import Object, made_from, pod, request, share, template

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("both")]

FIRST = "default-scheduler"
# 7500Mi fit twice into a T4 and three times into an A10G; each node has four.
PLACES = {"t4": 8, "a10g": 12}
BY_SCORE = {names.NODE_POLICY: "none"}


@pytest.fixture(scope="module")
def both(whole_site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The second scheduler runs."""
    folder = Path(tmp_path_factory.mktemp("second"))
    part, health = second.second(whole_site.state, folder)
    part.start()
    try:
        whole_site.wait(lambda: f"the second scheduler\n{part.tail()}", lambda: healthy(health))
        yield
        assert not part.crashed, part.tail()
    finally:
        part.stop()


def healthy(url: str) -> bool:
    """Whether a program of this machine, with a certificate of its own, says that it works."""
    context = ssl._create_unverified_context()  # noqa: S323 - asks this machine only
    try:
        with urllib.request.urlopen(url, timeout=2, context=context) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def owners(site: Site) -> dict[str, str]:
    """The pods whose claims have devices, and on which node."""
    return {
        claim["metadata"]["ownerReferences"][0]["name"]: history.results(claim)[0]["pool"]
        for claim in site.allocated()
    }


def burst(site: Site, count: int, template: str, annotations: dict[str, str]) -> dict[str, str]:
    """Create so many pods, by turns for both schedulers; the scheduler of each."""
    chosen = {f"burst-{number}": (FIRST, second.NAME)[number % 2] for number in range(count)}
    for name, scheduler in chosen.items():
        uses = {"gpu": made_from(template)}
        site.api.create(
            "pods", pod(name, claims=uses, annotations=annotations, schedulerName=scheduler)
        )
    return chosen


def fills(site: Site, wanted: Object, places: dict[str, int], annotations: dict[str, str]) -> None:
    """Half as many pods again as there are places: all places are taken, and the rest waits."""
    site.api.create("templates", template("wanted", wanted))
    chosen = burst(site, sum(places.values()) * 3 // 2, "wanted", annotations)
    site.wait("all places to be taken", lambda: len(owners(site)) == sum(places.values()))
    holders = owners(site)
    assert Counter(holders.values()) == places
    site.running(*holders)
    assert {chosen[name] for name in holders} == {FIRST, second.NAME}
    waiting = chosen.keys() - holders
    site.wait("the others to be unschedulable", lambda: all(map(unschedulable(site), waiting)))
    assert owners(site) == holders


def unschedulable(site: Site) -> Callable[[str], bool]:
    """Whether a pod's scheduler says that it fits nowhere."""
    return lambda name: site.condition(name)[0] == "Unschedulable"


def test_shares_from_two_schedulers(site: Site) -> None:
    """With the node axis for the pods of both: 30 pods for 20 places, and what goes is followed."""
    fills(site, request(**share()), PLACES, {})
    before = owners(site)
    for scheduler in (FIRST, second.NAME):
        leaver = next(one for one in before if site.pod(one)["spec"]["schedulerName"] == scheduler)
        site.delete(leaver)
        site.wait("a follower", lambda: len(owners(site)) == sum(PLACES.values()))
        (follower,) = owners(site).keys() - before.keys()
        site.running(follower)
        before = owners(site)


def test_whole_cards_from_two_schedulers(site: Site) -> None:
    """Without the node axis, as for schedulers that know no nomination: 12 pods for 8 cards."""
    fills(site, request(), {"t4": 4, "a10g": 4}, BY_SCORE)
    assert not any(one["status"].get("nominatedNodeName") for one in site.api.list("pods"))


@pytest.mark.parametrize(("policy", "cards"), [("spread", 4), ("compact", 2)])
def test_picks_of_the_second_scheduler_are_replaced(site: Site, policy: str, cards: int) -> None:
    """Four shares on one node: on four cards or on two; the scheduler takes the first that fits."""
    site.api.create("templates", template("share", request(**share())))
    annotations = {names.GPU_POLICY: policy, **BY_SCORE}
    for name in ("one", "two", "three", "four"):
        uses = {"gpu": made_from("share")}
        wanted = pod(
            name, claims=uses, node="t4", annotations=annotations, schedulerName=second.NAME
        )
        site.run(wanted)
    used = {device for name in ("one", "two", "three", "four") for device in site.devices_of(name)}
    assert len(used) == cards
