"""What a pod's review rests on: templates are read live, but not once for every pod of a burst."""

import asyncio

import pytest

from driver.admission import lookup
from driver.admission.lookup import Lookup
from driver.controller.pods import Referenced
from driver.controller.translate import ResourceNames
from driver.kube.rest import Rest
from driver.model.core import Node
from driver.wire.decode import convert
from tests.controller import commits
from tests.kube.apiserver import ApiServer

TEMPLATES = "/apis/resource.k8s.io/v1/resourceclaimtemplates"


@pytest.fixture
def look(rest: Rest) -> Lookup:
    """A lookup on an empty cluster."""
    return Lookup(rest, commits.cluster(), device_class=commits.CLASS, resources=ResourceNames())


def put(server: ApiServer, name: str, class_name: str = commits.CLASS) -> None:
    """Have a template in namespace a."""
    request = {"name": "gpu", "exactly": {"deviceClassName": class_name}}
    spec = {"spec": {"devices": {"requests": [request]}}}
    server.put(TEMPLATES, {"metadata": {"name": name, "namespace": "a"}, "spec": spec})


async def classes(look: Lookup, *names: str, namespace: str = "a") -> dict[str, str]:
    """The class that each of these templates asks for, of those that are found."""
    context = await look(namespace, Referenced(claims=frozenset(), templates=frozenset(names)))
    return {
        name: found.spec.spec.devices.requests[0].exactly.device_class_name
        for name, found in context.templates.items()
        if found.spec.spec.devices.requests[0].exactly is not None
    }


async def test_a_burst_reads_its_template_once(cluster: ApiServer, look: Lookup) -> None:
    """Each template of each namespace is asked for once in a while, not for each pod."""
    put(cluster, "one")
    put(cluster, "two", "other")
    for _ in range(3):
        assert await classes(look, "one", "two") == {"one": commits.CLASS, "two": "other"}
    assert len(cluster.requests) == 2
    assert await classes(look, "one", namespace="b") == {}


async def test_what_is_not_there_is_asked_for_again(cluster: ApiServer, look: Lookup) -> None:
    """A template may be made after its pod."""
    assert await classes(look, "one") == {}
    put(cluster, "one")
    assert await classes(look, "one") == {"one": commits.CLASS}


async def test_a_template_is_read_again(
    cluster: ApiServer, look: Lookup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its moment another template of the same name is seen, and nothing is kept for ever."""
    monkeypatch.setattr(lookup, "TEMPLATE_HOLDS_S", 0.01)
    put(cluster, "one")
    assert await classes(look, "one") == {"one": commits.CLASS}
    put(cluster, "one", "other")
    await asyncio.sleep(0.02)
    assert await classes(look, "one") == {"one": "other"}
    await asyncio.sleep(0.02)
    assert await classes(look) == {}


@pytest.mark.parametrize(("amount", "serves"), [(None, False), ("0", False), ("4", True)])
async def test_a_device_plugin_is_seen_in_the_nodes(
    rest: Rest, amount: str | None, serves: bool
) -> None:
    """By what is allocatable; a plugin that has gone leaves a zero."""
    at = commits.cluster()
    status = {"allocatable": {"nvidia.com/gpu": amount} if amount else {}}
    at.put_node(convert(Node, {"metadata": {"name": "a"}, "status": status}))
    look = Lookup(rest, at, device_class=commits.CLASS, resources=ResourceNames())
    context = await look("ns", Referenced(claims=frozenset(), templates=frozenset()))
    assert context.plugin_serves == serves
