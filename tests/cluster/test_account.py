"""The node plugin with the rights of the chart's account: it works, and cannot do more."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import workloads
from tests.cluster.api import Api, Object, RefusedError
from tests.cluster.plugins import away, plugin, running
from tests.cluster.site import Site
from tests.helm.chart import NAMESPACE, Chart
from tests.helm.conftest import chart

pytestmark = pytest.mark.cluster

__all__ = ["chart"]

ACCOUNT = "quadrant-node"
HERE, THERE = "t4", "a10g"


@pytest.fixture(scope="module")
def account(whole_site: Site, chart: Chart) -> Iterator[None]:
    """The chart's account, with its rights and what binds them to a node."""
    objects = [one for one in chart.render() if _is_of_account(one)]
    assert len(objects) > 3
    whole_site.deployment.apply(*objects)
    yield
    for one in objects:
        name = f"{one['kind']}/{one['metadata']['name']}"
        whole_site.deployment.kubectl("-n", NAMESPACE, "delete", name, "--ignore-not-found")


def _is_of_account(one: Object) -> bool:
    kinds = {"ServiceAccount", "ClusterRole", "ClusterRoleBinding"}
    policies = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    name = one["metadata"]["name"]
    return (one["kind"] in kinds and name == ACCOUNT) or (
        one["kind"] in policies and name.startswith(ACCOUNT)
    )


def kubeconfig(site: Site, path: Path, *bound: str) -> str:
    """Credentials of the account, as in a pod on that node; bound to none without a name."""
    binding = [option for node in bound for option in _to_node(node)]
    token = site.deployment.kubectl("-n", NAMESPACE, "create", "token", ACCOUNT, *binding)
    config = json.loads(Path(site.state["kubeconfig"]).read_text())
    config["users"][0]["user"] = {"token": token.strip()}
    path.write_text(json.dumps(config))
    return str(path)


def _to_node(node: str) -> list[str]:
    return ["--bound-object-kind=Node", f"--bound-object-name={node}"]


def refused(site: Site, credentials: str, claim: str, status: Object) -> str:
    """Why this account may not write this into a claim's status; empty when it may."""
    state = {**site.state, "kubeconfig": credentials}
    with contextlib.closing(Api(state)) as api:
        try:
            api.patch("claims", f"{claim}/status", {"status": status})
        except RefusedError as error:
            return str(error)
    return ""


@pytest.mark.usefixtures("account")
def test_the_plugin_works_with_its_account(site: Site, tmp_path: Path) -> None:
    """Slices, cordon, events, claims and their status."""
    credentials = kubeconfig(site, tmp_path / "here", HERE)
    part = plugin(site, HERE, f"--kubeconfig={credentials}", name="account")
    with away(site, HERE), running(site, part):
        user = site.claim_card("user", HERE, workloads.request(index=1))
        site.running(user)
        site.wait("a status", lambda: bool(_devices(site, user)))
        annotations = {"quadrant.dev/cordoned": "gpu-2,gpu-7"}
        site.api.patch("nodes", HERE, {"metadata": {"annotations": annotations}})
        site.wait("an event on the node", lambda: _is_told(site, "UnknownCard"))
        site.api.patch(
            "nodes", HERE, {"metadata": {"annotations": {"quadrant.dev/cordoned": None}}}
        )
        site.delete(user)
        assert not part.said("orbidden")


@pytest.mark.usefixtures("account")
def test_the_account_writes_nothing_else(site: Site, tmp_path: Path) -> None:
    """Whoever takes over a node has its claims' devices, and nothing of anybody else's."""
    here = site.claim_card("here", HERE, workloads.request())
    there = site.claim_card("there", THERE, workloads.request())
    site.running(here, there)
    site.wait("both states", lambda: bool(_devices(site, here)) and bool(_devices(site, there)))
    own = _devices(site, here)
    bound = kubeconfig(site, tmp_path / "here", HERE)
    assert refused(site, bound, here, {"devices": own}) == ""
    foreign = [*own, {**own[0], "driver": "other.example.com"}]
    for claim, status in (
        (here, {"reservedFor": []}),
        (here, {"allocation": None, "reservedFor": [], "devices": []}),
        (here, {"devices": foreign}),
        (there, {"devices": []}),
    ):
        assert refused(site, bound, claim, status) != "", (claim, status)
    unbound = kubeconfig(site, tmp_path / "unbound")
    assert refused(site, unbound, here, {"devices": []}) != ""


def _cordon(site: Site, cards: str | None) -> None:
    annotations = {"quadrant.dev/cordoned": cards}
    site.api.patch("nodes", HERE, {"metadata": {"annotations": annotations}})


def _devices(site: Site, claim: str) -> list[Any]:
    found = site.api.get("claims", claim) or {"status": {}}
    return list(found["status"].get("devices", ()))


def _is_told(site: Site, reason: str) -> bool:
    return any(event.get("reason") == reason for event in site.api.list("events"))
