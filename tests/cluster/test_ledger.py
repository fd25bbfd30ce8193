"""The ledger's rules where they need a real API server and a real scheduler (design.md).

Each test forces one of the cases in which a simpler ledger gave a device away twice, or in which
pods were stuck.
"""

import threading
import time
from collections.abc import Iterator

import pytest

from driver.model import names
from tests.cluster import history
from tests.cluster.site import Site
from tests.cluster.webhook import AFTER_OURS, BEFORE_OURS, Hold, stranger
from tests.cluster.workloads import (
    CLASS,
    Object,
    container,
    made_from,
    pod,
    request,
    template,
)

pytestmark = pytest.mark.cluster

NODE = "t4"
SPREAD = {names.GPU_POLICY: "spread"}


@pytest.fixture(scope="module", autouse=True)
def board(whole_site: Site) -> Iterator[Site]:
    """The node t4 has four cards that only one claim at a time can hold, two a NUMA node."""
    whole_site.replace_cards(NODE, "4xA100-SXM4-40GB", shareable=False)
    yield whole_site
    whole_site.replace_cards(NODE, "4xT4")


def whole(site: Site, name: str, *, index: int | None = None) -> str:
    """Create a pod on the node with a whole card, claimed by name; the pod's name."""
    return site.claim_card(name, NODE, request(index=index))


def one_of(site: Site, name: str, *indexes: int) -> str:
    """The same with one of these cards, as far from other pods as possible."""
    wanted = request()
    expression = f'device.attributes["{CLASS}"].index in {list(indexes)}'
    wanted["exactly"]["selectors"] = [{"cel": {"expression": expression}}]
    return site.claim_card(name, NODE, wanted, SPREAD)


def unschedulable(site: Site, name: str) -> None:
    """Wait until the scheduler says so of a pod, which is what autoscalers act on."""
    site.wait(f"pod {name} to be unschedulable", lambda: site.condition(name)[0] == "Unschedulable")


@pytest.fixture
def second_class(site: Site) -> Iterator[str]:
    """An extended resource that only one card serves; its name."""
    resource = "example.com/gpu-2"
    site.deployment.apply(_second_class(resource, index=2))
    yield resource
    site.deployment.kubectl("delete", "deviceclass", "second")


def test_refused_claim_of_an_extended_resource(site: Site, second_class: str) -> None:
    """Pods that lose against a swap become unschedulable, and the swapped device stays held.

    The scheduler chooses the device while it is free as far as it knows, and is refused when the
    other claim has landed: what it then takes out of its book must not be that claim's device.
    """
    landing, asking = Hold("swapped"), Hold("loser-extended-resources-")
    site.running(whole(site, "neighbour", index=0))
    with stranger(site.api, AFTER_OURS, landing), stranger(site.api, BEFORE_OURS, asking):
        # First fit is card 1; being apart from card 0 is card 2.
        one_of(site, "swapped", 1, 2)
        site.wait("the swap to be under way", lambda: landing.reached)
        loser = pod("loser", container(limits={second_class: "1"}), node=NODE)
        site.api.create("pods", loser)
        site.wait("the other choice to be under way", lambda: asking.reached)
        landing.open()
        site.running("swapped")
        asking.open()
        site.wait("a refusal", lambda: bool(_refusals(site, "loser")))
    assert site.devices_of("swapped") == [(NODE, "gpu-2")]
    unschedulable(site, "loser")
    site.api.create("pods", loser | {"metadata": {"name": "probe"}})
    unschedulable(site, "probe")
    assert not _refusals(site, "probe"), "the scheduler takes the held device for free"
    site.delete("swapped")
    site.api.delete("claims", "swapped")
    site.wait(
        "one of the two to get the device",
        lambda: bool(site.devices_of("loser") or site.devices_of("probe")),
    )


def _second_class(resource: str, *, index: int) -> Object:
    ours = f'device.driver == "{CLASS}"'
    that = f'device.attributes["{CLASS}"].index == {index}'
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "second"},
        "spec": {
            "extendedResourceName": resource,
            "selectors": [{"cel": {"expression": f"{ours} && {that}"}}],
        },
    }


def _refusals(site: Site, name: str) -> list[Object]:
    """What the scheduler says of a pod whose commits our hook refused."""
    uid = site.pod(name)["metadata"]["uid"]
    return [
        event
        for event in site.api.list("events")
        if event["involvedObject"].get("uid") == uid
        and "commit.quadrant.dev" in event.get("message", "")
    ]


def test_no_swap_ahead_of_a_late_release(site: Site) -> None:
    """A device released this moment may still be in the scheduler's book: no swap goes there."""
    site.running(whole(site, "neighbour", index=0), whole(site, "holder", index=2))
    site.api.delete("pods", "holder")
    # Pods are waited for before claims are free: the time counts from here.
    site.wait("the device to be released", lambda: not _allocated(site, "holder"))
    released = time.monotonic()
    one_of(site, "early", 1, 2)
    site.wait("the next allocation", lambda: _allocated(site, "early"))
    if time.monotonic() - released > 4:
        pytest.skip("this machine is too slow to see what happens within five seconds")
    assert site.devices_of("early") == [(NODE, "gpu-1")], "the scheduler's own pick"
    site.delete("early")
    site.wait("the device to be released", lambda: not _allocated(site, "early"))
    site.wait("the release to be past", lambda: time.monotonic() - released > 10)
    one_of(site, "late", 1, 2)
    site.running("late")
    assert site.devices_of("late") == [(NODE, "gpu-2")]


def _allocated(site: Site, name: str) -> bool:
    return bool(history.results(site.api.get("claims", name) or {}))


def test_two_claims_do_not_block_each_other(site: Site) -> None:
    """Of two pods that hold one card each and need one more, one is put back; both run in turn."""
    site.api.create("templates", template("whole", request()))
    both = {"first": made_from("whole"), "second": made_from("whole")}
    rivals = ("rival-1", "rival-2")
    refuse = threading.Event()
    refuse.set()

    def judge(name: str) -> str | None:
        return "not yet" if "-second-" in name and refuse.is_set() else None

    with stranger(site.api, BEFORE_OURS, judge):
        for name in rivals:
            site.api.create("pods", pod(name, claims=both, node=NODE))
        site.wait(
            "each to hold one card",
            lambda: [len(site.devices_of(name)) for name in rivals] == [1, 1],
        )
        for name in ("other-1", "other-2"):
            whole(site, name)
        site.running("other-1", "other-2")
        refuse.clear()
        site.wait(
            "one of them to get both",
            lambda: 2 in {len(site.devices_of(name)) for name in rivals},
        )
    winner, loser = sorted(rivals, key=lambda name: -len(site.devices_of(name)))
    site.running(winner)
    unschedulable(site, loser)
    site.delete(winner)
    site.running(loser)


def test_hook_removed_in_the_documented_way(site: Site) -> None:
    """Without the webhooks, and with a scheduler that was restarted, all is plain DRA."""
    site.api.create("templates", template("whole", request()))
    for name in ("quadrant-commit", "quadrant-pods"):
        site.api.delete("webhooks", name)
    site.restart("kube-scheduler")
    try:
        pods = [pod(f"plain-{number}", claims={"gpu": made_from("whole")}) for number in range(9)]
        for one in pods:
            site.api.create("pods", one)
        site.wait("every card to be taken", lambda: len(site.allocated()) == 8)
        (left,) = (one for one in map(_name, pods) if not site.devices_of(one))
        unschedulable(site, left)
        site.running(*(one for one in map(_name, pods) if one != left))
    finally:
        site.deployment.install_webhooks()


def _name(body: Object) -> str:
    return str(body["metadata"]["name"])
