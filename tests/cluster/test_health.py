"""Ill and closed cards on a real cluster: taints, eviction, what pods and claims say, recovery."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.deployment import Part
from tests.cluster import history, workloads
from tests.cluster.api import Object
from tests.cluster.plugins import away, plugin, running
from tests.cluster.site import Site
from tests.node.nvml import fake

pytestmark = pytest.mark.cluster

NODE = "t4"
UNHEALTHY, CORDONED = "gpu.quadrant.dev/unhealthy", "gpu.quadrant.dev/cordoned"


class Cards:
    """The simulated cards of one node: what is wrong with them, and what follows."""

    def __init__(self, site: Site) -> None:
        self._site = site
        (node,) = (one for one in site.state["nodes"] if one["name"] == NODE)
        self._file = Path(node["plugins_dir"]) / "gpu.quadrant.dev" / "faults"

    def suffer(self, *faults: str) -> None:
        """Have these faults, and no others."""
        self._file.write_text("\n".join(faults))

    def cordon(self, cards: str | None) -> None:
        """Close these cards, and no others, as `quadrant cordon` does."""
        annotations = {"quadrant.dev/cordoned": cards}
        self._site.api.patch("nodes", NODE, {"metadata": {"annotations": annotations}})

    def taints(self) -> dict[str, set[tuple[str, str]]]:
        """Key and effect of the taints of the cards that have any."""
        published = history.devices(self._site.api.list("slices"))
        return {
            name: {(taint["key"], taint["effect"]) for taint in device["taints"]}
            for (pool, name), device in published.items()
            if pool == NODE and device.get("taints")
        }

    def wait_for_taints(self, expected: dict[str, set[tuple[str, str]]]) -> None:
        """Wait until the cards have these taints and no others."""
        self._site.wait(f"taints {expected}", lambda: self.taints() == expected)


@pytest.fixture
def cards(site: Site) -> Iterator[Cards]:
    """The cards of the node, well again in the end."""
    made = Cards(site)
    yield made
    made.suffer()
    made.cordon(None)
    made.wait_for_taints({})


@pytest.fixture
def evicting(site: Site) -> Iterator[None]:
    """The node's plugin ends pods that use ill cards."""
    site.deployment.restart_node(NODE, "--unhealthy-effect=NoExecute")
    yield
    site.deployment.restart_node(NODE)


def health(site: Site, pod: str) -> list[tuple[str, str]]:
    """What a pod's status says of its devices: health and message."""
    return [
        (device["health"], device.get("message", ""))
        for container in site.pod(pod)["status"].get("containerStatuses", ())
        for resource in container.get("allocatedResourcesStatus", ())
        for device in resource["resources"]
    ]


def ready(site: Site, claim: str) -> list[tuple[str, str]]:
    """What a claim's status says of its devices: condition and message."""
    found = site.api.get("claims", claim) or {"status": {}}
    return [
        (condition["status"], condition.get("message", ""))
        for device in found["status"].get("devices", ())
        for condition in device["conditions"]
    ]


def waits_for_a_card(site: Site, pod: str) -> bool:
    """Whether a pod was found to fit nowhere."""
    found = site.pod(pod)
    return not found["spec"].get("nodeName") and site.condition(pod)[1] != ""


def test_an_ill_card_is_told_and_avoided(site: Site, cards: Cards) -> None:
    """NoSchedule: who uses it goes on and is told; nobody new comes, until it is well."""
    user = site.claim_card("user", NODE, workloads.request(index=1))
    site.running(user)
    site.wait("a healthy card", lambda: health(site, user) == [("Healthy", "")])
    site.wait("a ready device", lambda: ready(site, user) == [("True", "")])
    [device] = (site.api.get("claims", user) or {})["status"]["devices"]
    assert device["data"]["index"] == 1
    assert device["data"]["uuid"] in site.environment(user)["NVIDIA_VISIBLE_DEVICES"]

    cards.suffer("gpu-1 xid 79", "gpu-3 remap")
    ill = {(UNHEALTHY, "NoSchedule")}
    cards.wait_for_taints({"gpu-1": ill, "gpu-3": ill})
    site.wait("the pod to say so", lambda: "XID 79" in "".join(m for _, m in health(site, user)))
    assert [word for word, _ in health(site, user)] == ["Unhealthy"]
    site.wait("the claim to say so", lambda: "XID 79" in "".join(m for _, m in ready(site, user)))
    assert [word for word, _ in ready(site, user)] == ["False"]
    others = [site.claim_card(f"new-{n}", NODE, workloads.request()) for n in range(3)]

    def placed() -> list[str]:
        return [name for name in others if site.node_of(name)]

    site.wait("two cards to be used", lambda: len(placed()) == 2)
    site.running(*placed())
    [left] = set(others) - set(placed())
    site.wait("the third to wait", lambda: waits_for_a_card(site, left))
    assert {device for name in placed() for device in site.devices_of(name)} == {
        (NODE, "gpu-0"),
        (NODE, "gpu-2"),
    }

    cards.suffer()
    cards.wait_for_taints({})
    site.running(left, user)
    assert site.devices_of(left) == [(NODE, "gpu-3")]
    site.wait("the pod to be well", lambda: health(site, user) == [("Healthy", "")])
    site.wait("the claim to be well", lambda: ready(site, user) == [("True", "")])


def test_an_ill_card_evicts_where_that_is_wanted(site: Site, cards: Cards, evicting: None) -> None:
    """NoExecute: Kubernetes ends the pod; the next one runs there when the card is well."""
    user = site.claim_card("user", NODE, workloads.request(index=1))
    # Kubernetes asks for the effect to be named: without one, pods are evicted all the same.
    toleration = {"key": UNHEALTHY, "operator": "Exists", "effect": "NoExecute"}
    wanted = workloads.request(index=2, tolerations=[toleration])
    tolerant = site.claim_card("tolerant", NODE, wanted)
    site.running(user, tolerant)
    cards.suffer("gpu-1 lost", "gpu-2 lost")
    ill = {(UNHEALTHY, "NoExecute")}
    cards.wait_for_taints({"gpu-1": ill, "gpu-2": ill})
    site.wait("the pod to be evicted", lambda: site.api.get("pods", user) is None)
    site.api.create(
        "pods", workloads.pod("next", claims={"gpu": workloads.existing(user)}, node=NODE)
    )
    site.wait("the next pod to wait", lambda: waits_for_a_card(site, "next"))
    site.running(tolerant)
    cards.suffer()
    cards.wait_for_taints({})
    site.running("next")
    assert site.devices_of("next") == [(NODE, "gpu-1")]


def test_a_closed_card_is_avoided_until_it_is_opened(site: Site, cards: Cards) -> None:
    """Also over a restart of the plugin; what runs there stays."""
    user = site.claim_card("user", NODE, workloads.request(index=2))
    site.running(user)
    cards.cordon("gpu-1,gpu-2,gpu-9")
    closed = {(CORDONED, "NoSchedule")}
    cards.wait_for_taints({"gpu-1": closed, "gpu-2": closed})
    site.deployment.restart_node(NODE)
    late = site.claim_card("late", NODE, workloads.request(index=1))
    site.wait("the pod to wait", lambda: waits_for_a_card(site, late))
    cards.wait_for_taints({"gpu-1": closed, "gpu-2": closed})
    site.wait("an event on the node", lambda: bool(_events(site, "UnknownCard")))
    assert "names gpu-9" in _events(site, "UnknownCard")[0]["message"]
    cards.cordon(None)
    site.running(late, user)
    assert site.devices_of(late) == [(NODE, "gpu-1")]


def test_slices_come_back_with_their_taints(site: Site, cards: Cards) -> None:
    """The kubelet deletes them at its start, people by hand."""
    cards.suffer("gpu-0 ecc 2")
    ill = {"gpu-0": {(UNHEALTHY, "NoSchedule")}}
    cards.wait_for_taints(ill)
    before = _slice(site)
    site.restart(f"kubelet/{NODE}")
    site.wait("other slices", lambda: bool(_slice(site)) and _slice(site) != before)
    cards.wait_for_taints(ill)
    user = site.claim_card("user", NODE, workloads.request())
    site.running(user)


@pytest.fixture
def machine(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[fake.FakeMachine]:
    """The node's cards are those of the fake management library."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    built = fake.build(tmp_path_factory.mktemp("nvml"))
    made = fake.FakeMachine(built, tmp_path_factory.mktemp("machine"), "t4x4")
    told = plugin(site, NODE, "--simulate=", name="nvml")
    variables = ["env", *(f"{name}={value}" for name, value in made.variables().items())]
    part = Part(told.name, [*variables, *told._argv], told.log)
    with away(site, NODE), running(site, part):
        yield made


def test_what_the_driver_reports_reaches_pods(site: Site, machine: fake.FakeMachine) -> None:
    """Through NVML: an XID, a card that asks for a reset, and its recovery."""
    wanted = workloads.request(index=1, **workloads.share("1Gi"))
    user = site.claim_card("user", NODE, wanted)
    site.running(user)
    site.wait("a healthy card", lambda: health(site, user) == [("Healthy", "")])
    machine.write(1, "recovery", "1")
    machine.event(1, fake.XID, 95)
    site.wait("the pod to say so", lambda: "XID 95" in "".join(m for _, m in health(site, user)))
    late = site.claim_card("late", NODE, wanted)
    site.wait("the next pod to wait", lambda: waits_for_a_card(site, late))
    machine.write(1, "recovery", "0")
    site.wait("a healthy card", lambda: health(site, user) == [("Healthy", "")])
    site.running(late)
    # They hold cards that the node's own plugin does not have.
    site.delete(user, late)


def _slice(site: Site) -> list[str]:
    return [
        one["metadata"]["uid"]
        for one in site.api.list("slices")
        if one["spec"].get("nodeName") == NODE
    ]


def _events(site: Site, reason: str) -> list[Any]:
    found: list[Object] = site.api.list("events")
    return [event for event in found if event.get("reason") == reason]
