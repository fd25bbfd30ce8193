"""The node axis on a real scheduler: nominated, and no worse off where that comes to nothing."""

import uuid
from typing import Any

import pytest

from driver.model import names
from tests.cluster import history
from tests.cluster.site import Site
from tests.cluster.workloads import (
    CLASS,
    Object,
    claim,
    made_from,
    pod,
    request,
    share,
    template,
)

pytestmark = pytest.mark.cluster


def nominated(site: Site, name: str) -> str:
    """The node that was nominated for a pod whose gate is lifted."""

    def status() -> Any:
        return site.pod(name).get("status", {}).get("nominatedNodeName")

    site.wait(f"a nomination of pod {name}", lambda: bool(status()) and not gates(site, name))
    return str(status())


def gates(site: Site, name: str) -> list[Object]:
    """The scheduling gates that a pod still has."""
    return list(site.pod(name)["spec"].get("schedulingGates", []))


def other(node: str) -> str:
    """The other one of the two nodes."""
    return {"t4": "a10g", "a10g": "t4"}[node]


def test_cordoned_node(site: Site) -> None:
    """A node that is closed after it was nominated is not waited for."""
    site.api.create("templates", template("share", request(**share())))
    with site.frozen("kube-scheduler"):
        site.api.create("pods", pod("late", claims={"gpu": made_from("share")}))
        node = nominated(site, "late")
        site.api.patch("nodes", node, {"spec": {"unschedulable": True}})
    site.running("late")
    assert site.node_of("late") == other(node)


def test_full_node(site: Site) -> None:
    """A node that fills up after it was nominated is not waited for."""
    site.api.create("templates", template("whole", request()))
    with site.frozen("kube-scheduler"):
        site.api.create("pods", pod("late", claims={"gpu": made_from("whole")}))
        node = nominated(site, "late")
        for index in range(4):
            take_card(site, node, index)
    site.running("late")
    assert site.node_of("late") == other(node)


def take_card(site: Site, node: str, index: int) -> None:
    """Allocate a whole card to a claim of nobody, as a scheduler would."""
    name = f"taken-{node}-{index}"
    site.api.create("claims", claim(name, request(index=index)))
    device = history.devices(site.api.list("slices"))[node, f"gpu-{index}"]
    result = {
        "request": "gpu",
        "driver": CLASS,
        "pool": node,
        "device": f"gpu-{index}",
        "shareID": str(uuid.uuid4()),
        "consumedCapacity": {name: one["value"] for name, one in device["capacity"].items()},
    }
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    allocation = {"devices": {"results": [result]}, "nodeSelector": selector}
    site.api.patch("claims", f"{name}/status", {"status": {"allocation": allocation}})


def test_gate_webhook_is_down(site: Site) -> None:
    """Pods get no gate and no nomination, but they run, and the GPU axis is scored all the same."""
    site.api.create("templates", template("share", request(**share())))
    stored = site.api.get("webhooks", "quadrant-pods")
    assert stored is not None
    (webhook,) = stored["webhooks"]
    dead = {**webhook, "clientConfig": {**webhook["clientConfig"], "url": "https://127.0.0.1:1/"}}
    site.api.patch("webhooks", "quadrant-pods", {"webhooks": [dead]})
    try:
        site.wait("the API server to know", lambda: not _is_gated(site))
        spread = {names.GPU_POLICY: "spread"}
        pods = [
            pod(name, claims={"gpu": made_from("share")}, node="t4", annotations=spread)
            for name in ("one", "two", "three", "four")
        ]
        running = site.run(*pods)
    finally:
        site.api.patch("webhooks", "quadrant-pods", {"webhooks": [webhook]})
    site.wait("the API server to know", lambda: _is_gated(site))
    assert len({device for name in running for device in site.devices_of(name)}) == 4


def _is_gated(site: Site) -> bool:
    probe = pod("probe", claims={"gpu": made_from("share")})
    return "schedulingGates" in site.api.create("pods", probe, dryRun="All")["spec"]


def test_pod_that_fits_nowhere_is_shown_to_autoscalers(site: Site) -> None:
    """It keeps neither our gate nor a nomination: Cluster Autoscaler passes over both kinds."""
    site.api.create("templates", template("five", request(count=5)))
    site.api.create("pods", pod("large", claims={"gpu": made_from("five")}))

    def shown() -> bool:
        return site.condition("large")[0] == "Unschedulable"

    site.wait("the scheduler to say so", shown)
    assert not gates(site, "large")
    assert not site.pod("large")["status"].get("nominatedNodeName")


def test_lost_nomination_is_taken_back(site: Site) -> None:
    """A pod whose node fills up, as all others, becomes unschedulable and is nominated no more."""
    site.api.create("templates", template("whole", request()))
    with site.frozen("kube-scheduler"):
        site.api.create("pods", pod("late", claims={"gpu": made_from("whole")}))
        nominated(site, "late")
        for node in ("t4", "a10g"):
            for index in range(4):
                take_card(site, node, index)

    def shown() -> bool:
        pod = site.pod("late")
        return site.condition("late")[0] == "Unschedulable" and not pod["status"].get(
            "nominatedNodeName"
        )

    site.wait("an unschedulable pod without a nomination", shown)
