"""Claims come and go in crowds, nodes leave, the driver leaves: nothing is left, nothing hangs."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver.node.state.store import ClaimStore
from tests.cluster import workloads
from tests.cluster.plugins import away, devices, plugin, registered, running
from tests.cluster.site import Site
from tests.cluster.workloads import Object, made_from, pod, request, share, template

pytestmark = pytest.mark.cluster

NODE = "t4"
_CARDS = 8
_PODS = 50
_CLAIMS_OF_A_POD = 10
_LONG_S = 900.0


@pytest.fixture
def wide(site: Site) -> Iterator[Site]:
    """The node has eight large cards, which many claims can share."""
    large = plugin(site, NODE, "--simulate=8xH100-SXM", name="large")
    with away(site, NODE), running(site, large):
        site.wait("eight cards", lambda: len(devices(site, NODE)) == _CARDS)
        yield site
        site.clear()


def test_500_claims_of_50_pods_leave_nothing(wide: Site) -> None:
    """All prepared, all unprepared, by pods that start together and end together."""
    site = wide
    site.api.create("templates", template("share", request(**share(memory="1Gi", cores="1"))))
    uses: Object = {f"c{n}": made_from("share") for n in range(_CLAIMS_OF_A_POD)}
    names = [f"many-{n}" for n in range(_PODS)]
    for name in names:
        site.api.create("pods", pod(name, claims=uses, node=NODE))
    up: set[str] = set()

    def all_run() -> bool:
        up.update(
            one["metadata"]["name"]
            for one in site.api.list("pods")
            if one.get("status", {}).get("phase") == "Running"
        )
        return up >= set(names)

    site.wait(lambda: f"all pods to run, not {len(up)}", all_run, within=_LONG_S)
    assert len(site.cdi_files()) == _PODS * _CLAIMS_OF_A_POD
    assert len(site.allocated()) == _PODS * _CLAIMS_OF_A_POD
    for name in names:
        site.api.delete("pods", name)
    site.wait("all pods to be gone", lambda: not site.api.list("pods"), within=_LONG_S)
    site.wait("all claims to be gone", lambda: not site.api.list("claims"), within=_LONG_S)
    assert site.cdi_files() == []
    assert _held(site) == []


def _held(site: Site) -> list[str]:
    """The claims in the node's checkpoint."""
    (node,) = (one for one in site.state["nodes"] if one["name"] == NODE)
    store = ClaimStore(Path(node["plugins_dir"]) / workloads.CLASS / "claims.journal")
    held: list[str] = []
    store.locked(lambda book: held.extend(claim.uid for claim in book.claims()))
    store.close()
    return held


def _slices(site: Site) -> list[Object]:
    return [one for one in site.api.list("slices") if one["spec"]["pool"]["name"] == NODE]


def test_a_node_is_drained_leaves_and_comes_back(site: Site) -> None:
    """No pod hangs, nothing is left; the slices go with the Node and come with the next one."""
    site.api.create("templates", template("share", request(**share(memory="1Gi"))))
    site.run(*(pod(f"d{n}", claims={"gpu": made_from("share")}, node=NODE) for n in range(3)))
    site.deployment.kubectl("drain", NODE, "--force", "--ignore-daemonsets", "--timeout=120s")
    assert not site.api.list("pods")
    site.wait("the claims to be gone", lambda: not site.api.list("claims"))
    assert site.cdi_files() == []
    assert _held(site) == []
    assert _slices(site), "a drained node still has its cards"

    site.deployment.kubectl("delete", "node", NODE)
    site.wait("the slices to go", lambda: not _slices(site))
    site.restart(f"kubelet/{NODE}")
    site.wait("the slices to come back", lambda: bool(_slices(site)))
    site.run(pod("after", claims={"gpu": made_from("share")}, node=NODE))


def test_a_driver_that_leaves_too_early_can_be_brought_back(site: Site) -> None:
    """Without it the kubelet cannot finish a pod; docs/operate.md says in which order to go."""
    own = site.deployment.nodes[NODE]
    site.api.create("templates", template("share", request(**share(memory="1Gi"))))
    site.run(pod("stays", claims={"gpu": made_from("share")}, node=NODE))
    own.stop(signal.SIGTERM)
    site.api.delete("pods", "stays")

    def told() -> bool:
        return any(
            event.get("reason") in {"FailedKillPod", "FailedUnprepareDynamicResources"}
            or "not registered" in (event.get("note") or event.get("message", ""))
            for event in site.api.list("events")
        ) or all("terminated" in state for state in _states(site, "stays"))

    site.wait("the containers of the pod to have ended", told)
    assert site.api.get("pods", "stays") is not None
    assert len(site.cdi_files()) == 1
    own.start()
    registered(site, own)
    site.wait("the pod to be gone", lambda: site.api.get("pods", "stays") is None)
    site.wait("the claim to be gone", lambda: not site.api.list("claims"))
    assert site.cdi_files() == []


def _states(site: Site, name: str) -> list[Object]:
    found = site.api.get("pods", name) or {}
    return [one.get("state", {}) for one in found.get("status", {}).get("containerStatuses", [])]
