"""The ledger's rules where they need a real API server and a real scheduler (design.md).

Each test forces one of the cases in which a simpler ledger gave a device away twice, or in which
pods were stuck.
"""

import signal
import threading
import time
from collections.abc import Iterator

import pytest

from driver.model import names
from tests.cluster import history
from tests.cluster.site import Site
from tests.cluster.webhook import AFTER_OURS, BEFORE_OURS, stranger
from tests.cluster.workloads import (
    CLASS,
    Object,
    claim,
    container,
    existing,
    made_from,
    pod,
    request,
    template,
)

pytestmark = pytest.mark.cluster

NODE = "t4"
COMPACT = {names.GPU_POLICY: "compact"}
SPREAD = {names.GPU_POLICY: "spread"}


class Gate:
    """Holds back the writes of one claim, after our hook has answered, until it is opened."""

    def __init__(self, claim: str) -> None:
        self._claim = claim
        self._reached = threading.Event()
        self._open = threading.Event()

    @property
    def reached(self) -> bool:
        """Whether a write waits here."""
        return self._reached.is_set()

    def open(self) -> None:
        """Let go what waits, and all that comes."""
        self._open.set()

    def __call__(self, claim: str) -> str | None:
        """Let a write pass, or hold it."""
        if claim == self._claim:
            self._reached.set()
            self._open.wait(25)
        return None


@pytest.fixture
def board(site: Site) -> Iterator[Site]:
    """The node t4 has four cards that only one claim at a time can hold, two a NUMA node."""
    site.replace_cards(NODE, "4xA100-SXM4-40GB", shareable=False)
    yield site
    site.clear()
    site.replace_cards(NODE, "4xT4")


def whole(site: Site, name: str, *, index: int | None = None) -> str:
    """Create a pod on the node with a whole card, claimed by name; the pod's name."""
    site.api.create("claims", claim(name, request(index=index), annotations=COMPACT))
    site.api.create("pods", pod(name, claims={"gpu": existing(name)}, node=NODE))
    return name


def one_of(site: Site, name: str, *indexes: int) -> str:
    """The same with one of these cards, as far from other pods as possible."""
    wanted = request()
    expression = f'device.attributes["{CLASS}"].index in {list(indexes)}'
    wanted["exactly"]["selectors"] = [{"cel": {"expression": expression}}]
    site.api.create("claims", claim(name, wanted, annotations=SPREAD))
    site.api.create("pods", pod(name, claims={"gpu": existing(name)}, node=NODE))
    return name


def unschedulable(site: Site, name: str) -> None:
    """Wait until the scheduler says so of a pod, which is what autoscalers act on."""
    site.wait(f"pod {name} to be unschedulable", lambda: site.condition(name)[0] == "Unschedulable")


def test_late_landing_after_take_over(site: Site) -> None:
    """What a killed controller answered does not land on a device that its successor gives away."""
    gate = Gate("first")
    with stranger(site.api, AFTER_OURS, gate):
        whole(site, "first")
        site.wait("the answer to be under way", lambda: gate.reached)
        site.deployment.controller.stop(signal.SIGKILL)
        site.deployment.start_controller()
        second = whole(site, "second")
        site.running(second)
        assert site.devices_of(second) == [(NODE, "gpu-0")], "the device that was answered before"
        assert not history.results(site.api.get("claims", "first") or {}), "it has landed early"
        gate.open()
        site.running("first")
    assert len({*site.devices_of("first"), *site.devices_of(second)}) == 2


def test_dry_run_leaves_no_trace(site: Site) -> None:
    """The answer is shown, nothing is stored, and nothing is held."""
    whole(site, "real", index=3)
    site.running("real")
    (real,) = (one for one in site.api.list("claims") if one["metadata"]["name"] == "real")
    for name in ("dry-1", "dry-2"):
        site.api.create("claims", claim(name, request(), annotations=COMPACT))
        body = {"status": {"allocation": real["status"]["allocation"]}}
        shown = site.api.patch("claims", f"{name}/status", body, dryRun="All")
        (result,) = history.results(shown)
        assert result["device"] == "gpu-0", "the held card is replaced, by the same one each time"
        assert not history.results(site.api.get("claims", name) or {})
    whole(site, "next")
    site.running("next")
    assert site.devices_of("next") == [(NODE, "gpu-0")]


def test_refused_claim_of_an_extended_resource(board: Site) -> None:
    """Pods that lose against a swap become unschedulable, and the swapped device stays held."""
    board.deployment.apply(_second_class("example.com/gpu-2", index=2))
    gate = Gate("swapped")
    board.running(whole(board, "neighbour", index=0))
    with stranger(board.api, AFTER_OURS, gate):
        # First fit is card 1; being apart from card 0 is card 2.
        one_of(board, "swapped", 1, 2)
        board.wait("the swap to be under way", lambda: gate.reached)
        loser = pod("loser", container(limits={"example.com/gpu-2": "1"}), node=NODE)
        board.api.create("pods", loser)
        board.wait("a refusal", lambda: bool(_refusals(board, "loser")))
        gate.open()
        board.running("swapped")
    assert board.devices_of("swapped") == [(NODE, "gpu-2")]
    unschedulable(board, "loser")
    board.api.create("pods", loser | {"metadata": {"name": "probe"}})
    unschedulable(board, "probe")
    assert not _refusals(board, "probe"), "the scheduler takes the held device for free"
    board.delete("swapped")
    board.api.delete("claims", "swapped")
    board.wait(
        "one of the two to get the device",
        lambda: bool(board.devices_of("loser") or board.devices_of("probe")),
    )
    board.deployment.kubectl("delete", "deviceclass", "second")


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
    """Events on a pod that say that our hook refused a commit."""
    uid = site.pod(name)["metadata"]["uid"]
    return [
        event
        for event in site.api.list("events")
        if event.get("reason") == "DevicesRefused" and event["involvedObject"].get("uid") == uid
    ]


def test_no_swap_ahead_of_a_late_release(board: Site) -> None:
    """A device released this moment may still be in the scheduler's book: no swap goes there."""
    board.running(whole(board, "neighbour", index=0), whole(board, "holder", index=2))
    board.api.delete("pods", "holder")
    # Pods are waited for before claims are free: the time counts from here.
    board.wait("the device to be released", lambda: not _allocated(board, "holder"))
    released = time.monotonic()
    one_of(board, "early", 1, 2)
    board.wait("the next allocation", lambda: _allocated(board, "early"))
    if time.monotonic() - released > 4:
        pytest.skip("this machine is too slow to see what happens within five seconds")
    assert board.devices_of("early") == [(NODE, "gpu-1")], "the scheduler's own pick"
    board.delete("early")
    board.wait("the device to be released", lambda: not _allocated(board, "early"))
    board.wait("the release to be past", lambda: time.monotonic() - released > 10)
    one_of(board, "late", 1, 2)
    board.running("late")
    assert board.devices_of("late") == [(NODE, "gpu-2")]


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
