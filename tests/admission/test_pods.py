"""POST /pods as a handler: looks up, decides, creates the template, or says why it cannot."""

import asyncio
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import pytest

from driver.admission.pods import PodHandler
from driver.admission.server import Allowed, Answer, Call, Denied
from driver.controller.pods import Referenced, ReviewContext
from driver.controller.templates import Templates
from driver.controller.translate import ResourceNames
from driver.kube.errors import KubeError, Unreachable
from driver.kube.rest import Rest
from driver.wire.admission import AdmissionRequest
from tests.controller.podsamples import MEMORY, PERCENTAGE, container, context, pod
from tests.kube.apiserver import ApiServer
from tests.kube.objects import Refusal

TEMPLATES = "/apis/resource.k8s.io/v1/resourceclaimtemplates"
SHARE = pod(container(limits={MEMORY: "5"}))


class Cluster:
    """What the handler looks at."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Referenced]] = []
        self.error: Exception | None = None

    async def look(self, namespace: str, referenced: Referenced) -> ReviewContext:
        """The context, or a failure."""
        self.asked.append((namespace, referenced))
        if self.error is not None:
            raise self.error
        return context()


@pytest.fixture
def seen() -> Cluster:
    """What the handler looks at."""
    return Cluster()


class Patience:
    """A call with some seconds left."""

    def __init__(self, seconds: float) -> None:
        self.deadline = asyncio.get_running_loop().time() + seconds


async def handle(
    seen: Cluster, rest: Rest, raw: dict[str, Any], *, dry_run: bool = False, seconds: float = 5
) -> Answer:
    """The handler's answer."""
    handler = PodHandler(
        seen.look, Templates(rest, lambda: datetime(2026, 11, 30, tzinfo=UTC)), ResourceNames()
    )
    request = AdmissionRequest(
        uid="u", namespace="team", object=msgspec.Raw(msgspec.json.encode(raw)), dry_run=dry_run
    )
    return await handler.handle(request, cast(Call, Patience(seconds)))


async def test_translates(cluster: ApiServer, rest: Rest, seen: Cluster) -> None:
    """The template exists before the pod is let go."""
    answer = await handle(seen, rest, SHARE)
    assert isinstance(answer, Allowed)
    (added,) = (item for item in answer.operations if item["path"] == "/spec/resourceClaims")
    name = added["value"][0]["resourceClaimTemplateName"]
    assert cluster.get(TEMPLATES, name, "team")


async def test_dry_run_leaves_no_trace(cluster: ApiServer, rest: Rest, seen: Cluster) -> None:
    """The answer is the same, and nothing is created."""
    dry = await handle(seen, rest, SHARE, dry_run=True)
    assert cluster.requests == []
    assert dry == await handle(seen, rest, SHARE)


async def test_refuses(rest: Rest, seen: Cluster) -> None:
    """What the review refuses is denied with its sentence."""
    answer = await handle(seen, rest, pod(container(limits={PERCENTAGE: "120"})))
    assert isinstance(answer, Denied)
    assert "from 0 to 100" in answer.message


async def test_looks_up_what_the_pod_names(rest: Rest, seen: Cluster) -> None:
    """Claims and templates of the pod's namespace."""
    claims = [
        {"name": "x", "resourceClaimName": "c"},
        {"name": "y", "resourceClaimTemplateName": "t"},
    ]
    await handle(seen, rest, pod(container(), resourceClaims=claims))
    assert seen.asked == [("team", Referenced(frozenset({"c"}), frozenset({"t"})))]


async def test_template_cannot_be_created(cluster: ApiServer, rest: Rest, seen: Cluster) -> None:
    """A pod without its template would wait for ever: it is refused with the server's reason."""
    cluster.refuse(
        Refusal(403, "Forbidden", "exceeded quota"), path="resourceclaimtemplates", times=9
    )
    answer = await handle(seen, rest, SHARE)
    assert isinstance(answer, Denied)
    assert "exceeded quota" in answer.message


async def test_look_up_fails(rest: Rest, seen: Cluster) -> None:
    """A pod in HAMi's words is refused; another is left to the webhook's failurePolicy."""
    seen.error = Unreachable("no connection", sent=False)
    assert isinstance(await handle(seen, rest, SHARE), Denied)
    with pytest.raises(KubeError):
        await handle(seen, rest, pod(container(), resourceClaims=[{"name": "x"}]))


async def test_api_server_stalls(cluster: ApiServer, rest: Rest, seen: Cluster) -> None:
    """The refusal comes while the caller still waits."""
    cluster.answering.clear()
    answer = await handle(seen, rest, SHARE, seconds=0.4)
    cluster.answering.set()
    assert isinstance(answer, Denied)
    assert "in time" in answer.message
