"""Templates in the cluster: there when a pod needs them, gone when nobody does."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from driver.controller import translate_template
from driver.controller.templates import Templates
from driver.controller.translate import Ask
from driver.controller.translate_selectors import Wanted
from driver.controller.translate_template import TOUCH_AFTER, UNUSED_AFTER, Asked
from driver.kube.rest import Rest
from driver.model import names
from driver.model.api import ObjectMeta
from driver.model.core import Pod, PodResourceClaim, PodSpec
from driver.model.resourceclaim import ResourceClaimTemplate
from tests.kube.apiserver import ApiServer
from tests.kube.clock import FakeClock
from tests.kube.objects import Refusal

TEMPLATES = "/apis/resource.k8s.io/v1/resourceclaimtemplates"


class Now:
    """A time that tests set."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 30, tzinfo=UTC)

    def __call__(self) -> datetime:
        """The time."""
        return self.time


def wanted(memory: int = 5) -> ResourceClaimTemplate:
    """A template for a share."""
    found = translate_template.requests(
        [Asked("a", Ask(memory_mib=memory, cores=0))],
        Wanted(),
        [],
        device_class=names.DRIVER,
        driver=names.DRIVER,
    )
    return translate_template.template(found, "team", {names.GPU_POLICY: "spread"})


NAME = wanted().metadata.name


@pytest.fixture
async def cluster() -> AsyncIterator[ApiServer]:
    """An empty cluster."""
    async with ApiServer() as running:
        yield running


@pytest.fixture
async def rest(cluster: ApiServer) -> AsyncIterator[Rest]:
    """A client that never really waits."""
    async with cluster.session() as session:
        yield Rest(session, clock=FakeClock())


@pytest.fixture
def now() -> Now:
    """The time."""
    return Now()


def used_at(cluster: ApiServer) -> str:
    """When the template was last used, as it is stored."""
    found: str = cluster.get(TEMPLATES, NAME, "team")["metadata"]["annotations"][names.LAST_USED]
    return found


async def test_created(cluster: ApiServer, rest: Rest, now: Now) -> None:
    """It is stored with its label, what claims carry, and the time of its use."""
    await Templates(rest, now).ensure(wanted())
    stored = cluster.get(TEMPLATES, NAME, "team")
    assert stored["metadata"]["labels"] == {names.TEMPLATE_LABEL: "true"}
    assert stored["spec"]["metadata"]["annotations"] == {names.GPU_POLICY: "spread"}
    assert stored["spec"]["spec"]["devices"]["requests"][0]["name"] == "gpu-0"
    assert used_at(cluster) == "2026-11-30T00:00:00Z"


async def test_burst_asks_once(cluster: ApiServer, rest: Rest, now: Now) -> None:
    """Replicas that follow each other closely need no further call."""
    templates = Templates(rest, now)
    await templates.ensure(wanted())
    asked = len(cluster.requests)
    await templates.ensure(wanted())
    assert len(cluster.requests) == asked
    now.time += timedelta(minutes=1)
    await templates.ensure(wanted())
    assert len(cluster.requests) > asked


async def test_a_deleted_template_is_made_again(cluster: ApiServer, rest: Rest, now: Now) -> None:
    """Somebody cleans up between two pods: the second one gets a template all the same."""
    templates = Templates(rest, now)
    await templates.ensure(wanted())
    (made,) = cluster.objects.in_collection(TEMPLATES)
    cluster.remove(TEMPLATES, made["metadata"]["name"], made["metadata"]["namespace"])
    now.time += timedelta(seconds=2)
    await templates.ensure(wanted())
    assert len(cluster.objects.in_collection(TEMPLATES)) == 1


async def test_use_is_noted_again(cluster: ApiServer, rest: Rest, now: Now) -> None:
    """Once in a while, so that the template does not count as unused; not at every use."""
    await Templates(rest, now).ensure(wanted())
    now.time += TOUCH_AFTER
    await Templates(rest, now).ensure(wanted())
    assert used_at(cluster) == "2026-11-30T00:00:00Z"
    now.time += timedelta(minutes=1)
    await Templates(rest, now).ensure(wanted())
    assert used_at(cluster) == "2026-11-30T00:16:00Z"


async def test_other_replica_is_faster(cluster: ApiServer, rest: Rest, now: Now) -> None:
    """A template that appears between looking and creating is as good as ours."""
    await Templates(rest, now).ensure(wanted())
    cluster.refuse(Refusal(404, "NotFound"))
    await Templates(rest, now).ensure(wanted())


async def test_collected(cluster: ApiServer, rest: Rest, now: Now) -> None:
    """Only what nobody uses is deleted, and a pod that comes later makes it again."""
    templates = Templates(rest, now)
    for memory in (5, 6):
        await templates.ensure(wanted(memory))
    other = {"metadata": {"name": "somebodys", "namespace": "team"}}
    cluster.put(TEMPLATES, other)
    claim = PodResourceClaim(name="gpu", resource_claim_template_name=wanted(6).metadata.name)
    pod = Pod(metadata=ObjectMeta(namespace="team"), spec=PodSpec(resource_claims=(claim,)))
    assert await templates.collect([pod]) == 0
    now.time += UNUSED_AFTER + timedelta(seconds=1)
    assert await templates.collect([pod]) == 1
    assert {item["metadata"]["name"] for item in cluster.objects.in_collection(TEMPLATES)} == {
        "somebodys",
        wanted(6).metadata.name,
    }
    await templates.ensure(wanted())
    assert cluster.get(TEMPLATES, NAME, "team")


async def test_use_wins_over_collection(cluster: ApiServer, rest: Rest, now: Now) -> None:
    """A template that is used between looking and deleting stays."""
    templates = Templates(rest, now)
    await templates.ensure(wanted())
    now.time += UNUSED_AFTER + timedelta(seconds=1)

    class Late:
        """Pods that are looked at after the list, as another pod's admission touches."""

        def __iter__(self) -> "Late":
            stored = cluster.get(TEMPLATES, NAME, "team")
            stored["metadata"]["annotations"][names.LAST_USED] = translate_template.stamp(now.time)
            cluster.put(TEMPLATES, stored)
            return self

        def __next__(self) -> Pod:
            raise StopIteration

    assert await templates.collect(Late()) == 0
    assert cluster.get(TEMPLATES, NAME, "team")
