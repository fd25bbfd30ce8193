"""The parts on a node fail and come back under running pods."""

import signal
from pathlib import Path

import pytest

from tests.cluster.site import Site
from tests.cluster.workloads import Object, made_from, pod, request, share, template

pytestmark = pytest.mark.cluster

NODE = "t4"


@pytest.fixture
def old(site: Site) -> Object:
    """A pod with a share of a card of the node, running."""
    site.api.create("templates", template("share", request(**share())))
    site.run(pod("old", claims={"gpu": made_from("share")}, node=NODE))
    return container_of(site, "old")


def new(name: str = "new") -> Object:
    """Another such pod."""
    return pod(name, claims={"gpu": made_from("share")}, node=NODE)


def container_of(site: Site, name: str) -> Object:
    """Which container it is, and how often it was started."""
    (status,) = site.pod(name)["status"]["containerStatuses"]
    return {key: status[key] for key in ("containerID", "restartCount")}


def test_node_plugin_killed_under_running_pods(site: Site, old: Object) -> None:
    """Slices and CDI files that vanish meanwhile are made anew; pods that came meanwhile start."""
    plugin = site.deployment.nodes[NODE]
    plugin.stop(signal.SIGKILL)
    site.api.create("pods", new("meanwhile"))
    site.wait("a pod to be bound meanwhile", lambda: site.node_of("meanwhile") == NODE)
    (lost,) = site.cdi_files()
    (folder,) = (node["cdi_dir"] for node in site.state["nodes"] if node["name"] == NODE)
    (Path(folder) / lost.split("/")[1]).unlink()
    for part in site.api.list("slices"):
        if part["spec"]["pool"]["name"] == NODE:
            site.api.delete("slices", part["metadata"]["name"])

    plugin.start()
    site.run(new())
    site.running("meanwhile")
    assert lost in site.cdi_files()
    assert len(site.cdi_files()) == 3
    assert container_of(site, "old") == old | {"restartCount": 0}
    assert "CUDA_DEVICE_MEMORY_LIMIT_0" in site.environment("meanwhile")


def test_slices_are_restored(site: Site) -> None:
    """Whoever deletes or changes what a plugin publishes changes nothing for long."""

    def mine() -> list[Object]:
        return [one for one in site.api.list("slices") if one["spec"]["pool"]["name"] == NODE]

    (before,) = mine()
    site.api.delete("slices", before["metadata"]["name"])
    site.wait("the slice to be back", lambda: bool(mine()))
    (after,) = mine()
    assert after["spec"]["devices"] == before["spec"]["devices"]
    first = after["spec"]["devices"][0]
    changed = [{**first, "allowMultipleAllocations": None}, *after["spec"]["devices"][1:]]
    site.api.patch("slices", after["metadata"]["name"], {"spec": {"devices": changed}})
    site.wait(
        "the slice to be right again",
        lambda: [one["spec"]["devices"] for one in mine()] == [before["spec"]["devices"]],
    )


def test_kubelet_restarted_under_running_pods(site: Site, old: Object) -> None:
    """It finds the plugin again; running pods are not touched, new ones start, old ones end."""
    site.restart(f"kubelet/{NODE}")
    site.run(new())
    assert container_of(site, "old") == old | {"restartCount": 0}
    site.delete("old")
    site.wait("the CDI file of the old pod to be gone", lambda: len(site.cdi_files()) == 1)
