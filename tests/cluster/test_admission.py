"""Do the webhooks work as the API server calls them: real objects, conditions, certificates?"""

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from driver.admission.certificates import CERTIFICATE_FILE, KEY_FILE, ServingCertificate
from driver.admission.configuration import (
    COMMIT_CONFIGURATION,
    COMMIT_PATH,
    PODS_CONFIGURATION,
    PODS_PATH,
    commit_configuration,
    pods_configuration,
)
from driver.admission.pods import PodHandler
from driver.admission.rotation import OwnCertificates
from driver.admission.server import AdmissionServer, Allowed, Answer, Call, Denied, Route
from driver.controller.cards import Card
from driver.controller.pods import Referenced, ReviewContext
from driver.controller.policies import Defaults
from driver.controller.templates import Templates
from driver.controller.translate import ResourceNames
from driver.kube.errors import ApiError, Forbidden, KubeError, NotFound
from driver.kube.rest import ONCE, Rest
from driver.kube.session import open_session
from driver.model import names
from driver.model.allocation import Features
from driver.model.api import ObjectMeta
from driver.model.ids import ObjectKey
from driver.wire.admission import AdmissionRequest
from driver.wire.patch import MERGE_PATCH

ROOT = Path(__file__).parents[2]
CLUSTER = "admission"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
RESOURCE = "/apis/resource.k8s.io/v1"
PODS = "/api/v1/namespaces/default/pods"
CLAIMS = f"{RESOURCE}/namespaces/default/resourceclaims"
TEMPLATES = f"{RESOURCE}/namespaces/default/resourceclaimtemplates"
MIB = 1024 * 1024

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(os.geteuid() != 0, reason="hack/cluster keeps its files where root may"),
]


def hack(*arguments: str) -> str:
    """Run hack/cluster."""
    command = [str(ROOT / "hack" / "cluster"), *arguments, "--name", CLUSTER]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


@pytest.fixture(scope="module")
def kubeconfig() -> Iterator[str]:
    """A control plane of our own, with our DeviceClass."""
    hack("up", "--control-plane-only")
    yield hack("kubeconfig")
    hack("down")


class World:
    """The cluster, our server in it, and what it was asked."""

    def __init__(self, rest: Rest) -> None:
        self.rest = rest
        self.pods: list[str] = []
        self.commits: list[tuple[str, bool]] = []
        self.of_namespaces: dict[str, str] = {}

    async def create(self, place: str, body: dict[str, Any], **params: str) -> dict[str, Any]:
        """Create an object; returns it as it is stored."""
        answer = await self.rest.create(place, json.dumps(body).encode(), params=params)
        found: dict[str, Any] = json.loads(answer)
        return found

    async def get(self, path: str) -> dict[str, Any]:
        """Read an object."""
        found: dict[str, Any] = json.loads(await self.rest.get(path))
        return found

    async def change(self, path: str, body: dict[str, Any], **params: str) -> None:
        """Merge something into an object."""
        await self.rest.patch(path, json.dumps(body).encode(), MERGE_PATCH, params=params)

    async def allocate(self, claim: str, driver: str, **params: str) -> None:
        """Create a claim, and give it a device as the scheduler does."""
        request = {"name": "gpu", "exactly": {"deviceClassName": "any"}}
        spec = {"devices": {"requests": [request]}}
        await self.create(CLAIMS, {**_object("ResourceClaim", claim), "spec": spec})
        result = {"request": "gpu", "driver": driver, "pool": "n", "device": "gpu-0"}
        status = {"status": {"allocation": {"devices": {"results": [result]}}}}
        await self.change(f"{CLAIMS}/{claim}/status", status, **params)

    async def look(self, namespace: str, _: Referenced) -> ReviewContext:
        """A cluster of two kinds of cards; templates are not looked up."""
        return ReviewContext(
            namespace=ObjectMeta(name=namespace, annotations=self.of_namespaces),
            defaults=Defaults(node="compact", gpu="spread"),
            features=Features(consumable_capacity=True),
            cards=frozenset({Card(15360 * MIB, "Tesla T4"), Card(23028 * MIB, "NVIDIA A10G")}),
        )

    async def commit(self, request: AdmissionRequest, _: Call) -> Answer:
        """Refuse by name, else allow."""
        self.commits.append((request.name, request.dry_run))
        return Denied("no room on any node") if request.name == "refused" else Allowed()


def _object(kind: str, name: str) -> dict[str, Any]:
    version = "v1" if kind == "Pod" else "resource.k8s.io/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}}


def pod(
    name: str, limits: dict[str, str], annotations: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    """A pod with one container."""
    containers = [{"name": "main", "image": "none", "resources": {"limits": limits}}]
    body = _object("Pod", name)
    body["metadata"]["annotations"] = annotations or {}
    return {**body, "spec": {"containers": containers, **spec}}


@pytest.fixture
async def world(kubeconfig: str, tmp_path: Path) -> AsyncIterator[World]:
    """Both webhooks installed, and our server behind them; what tests create is removed."""
    async with open_session(kubeconfig) as session:
        found = World(Rest(session, policy=ONCE))
        async with _served(found, tmp_path):
            yield found
        for place in (PODS, CLAIMS, TEMPLATES, WEBHOOKS):
            await found.rest.delete(place, params={"gracePeriodSeconds": "0"})


@asynccontextmanager
async def _served(world: World, folder: Path) -> AsyncIterator[AdmissionServer]:
    own = OwnCertificates(
        world.rest,
        ObjectKey("default", "quadrant-authority"),
        hosts=("127.0.0.1",),
        configurations=(COMMIT_CONFIGURATION, PODS_CONFIGURATION),
        folder=folder,
    )
    # An authority of eight years ago: its successor is due, and what it signed has expired.
    for now in (datetime.now(UTC) - timedelta(days=2920), datetime.now(UTC)):
        trusted = await own.ensure(now)
    certificate = ServingCertificate(folder / CERTIFICATE_FILE, folder / KEY_FILE)
    certificate.load()
    reviews = PodHandler(
        world.look, Templates(world.rest, lambda: datetime.now(UTC)), ResourceNames()
    )

    async def review(request: AdmissionRequest, call: Call) -> Answer:
        world.pods.append(request.name)
        return await reviews.handle(request, call)

    routes = {
        PODS_PATH: Route(handler=review, fails_closed=False),
        COMMIT_PATH: Route(handler=world.commit, fails_closed=True),
    }
    server = AdmissionServer(routes, certificate.context)
    await server.start()
    url = f"https://127.0.0.1:{server.port}"
    resources = ResourceNames().all()
    for configuration in (
        commit_configuration(url, trusted),
        pods_configuration(url, trusted, resources=resources, own_namespace="quadrant-system"),
    ):
        await world.create(WEBHOOKS, configuration)
    await _until_asked(world)
    yield server
    await server.stop()


async def _until_asked(world: World) -> None:
    """Wait until the API server calls what was installed a moment ago."""
    async with asyncio.timeout(30):
        while not (world.pods and world.commits):
            probe = pod("probe", {"nvidia.com/gpumem": "1"})
            await world.create(PODS, probe, dryRun="All")
            try:
                await world.allocate("probe", names.DRIVER, dryRun="All")
            except ApiError:
                await asyncio.sleep(0.1)
            await world.rest.delete(f"{CLAIMS}/probe")
    world.pods.clear()
    world.commits.clear()


async def test_translated_pod_gets_its_claim(world: World) -> None:
    """The API server takes our template, and kube-controller-manager makes the claim from it."""
    annotations = {names.HAMI_GPU_POLICY: "binpack", "nvidia.com/use-gputype": 'A10G,"]\\ 🙂'}
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "7500", "cpu": "1"}
    stored = await world.create(PODS, pod("share", limits, annotations))
    assert stored["spec"]["schedulingGates"] == [{"name": names.PLACEMENT_GATE}]
    assert stored["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1"}
    async with asyncio.timeout(30):
        while not (claims := (await world.get(CLAIMS))["items"]):  # noqa: ASYNC110 # no watch here
            await asyncio.sleep(0.1)
    (claim,) = claims
    assert claim["metadata"]["annotations"][names.GPU_POLICY] == "binpack"
    asked = claim["spec"]["devices"]["requests"][0]["exactly"]["capacity"]["requests"]
    assert asked == {"memory": "7500Mi", "cores": "0"}


@pytest.mark.parametrize(
    ("limits", "annotations"),
    [
        ({"nvidia.com/gpumem-percentage": "45"}, {"nvidia.com/nouse-gpuuuid": "GPU-1"}),
        ({"nvidia.com/gpu": "2"}, {"nvidia.com/numa-bind": "true"}),
        ({"nvidia.com/gpucores": "30"}, {"nvidia.com/nouse-gputype": "T4"}),
    ],
)
async def test_templates_are_valid(
    world: World, limits: dict[str, str], annotations: dict[str, str]
) -> None:
    """Alternatives, constraints and selectors pass validation."""
    stored = await world.create(PODS, pod("valid", limits, annotations))
    (claim,) = stored["spec"]["resourceClaims"]
    assert await world.get(f"{TEMPLATES}/{claim['resourceClaimTemplateName']}")


async def test_dry_run_creates_nothing(world: World) -> None:
    """The translated pod is shown, and no template is left."""
    shown = await world.create(PODS, pod("dry", {"nvidia.com/gpumem": "123"}), dryRun="All")
    assert shown["spec"]["resourceClaims"]
    assert (await world.get(TEMPLATES))["items"] == []


async def test_refusal_reaches_the_user(world: World) -> None:
    """Our sentence is in the answer to whoever creates the pod."""
    with pytest.raises(Forbidden, match="from 0 to 100"):
        await world.create(PODS, pod("bad", {"nvidia.com/gpucores": "101"}))
    slip = {"quadrant.dev/gpu-polcy": "spread"}
    with pytest.raises(Forbidden, match=r"did you mean quadrant\.dev/gpu-policy\?"):
        await world.create(PODS, pod("slip", {"nvidia.com/gpucores": "10"}, slip))


async def test_a_warning_reaches_the_user(world: World, kubeconfig: str) -> None:
    """What others have to mend is printed by kubectl, and the pod is created."""
    world.of_namespaces = {"quadrant.dev/gpu-polcy": "spread"}
    kubectl = json.loads(hack("status", "-o", "json"))["bin"]["kubectl"]
    process = await asyncio.create_subprocess_exec(
        *(kubectl, "--kubeconfig", kubeconfig, "create", "-f", "-"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    told, warned = await process.communicate(
        json.dumps(pod("warned", {"nvidia.com/gpumem": "5"})).encode()
    )
    assert b"pod/warned created" in told
    assert b"Warning: annotation quadrant.dev/gpu-polcy of namespace default" in warned


async def test_only_pods_that_ask_are_reviewed(world: World) -> None:
    """Conditions and namespaces keep the webhook away from all other pods."""
    later = [{"name": "x", "resourceClaimTemplateName": "later"}]
    implicit = {"deviceclass.resource.kubernetes.io/any": "1"}
    await world.create(PODS, pod("plain", {"cpu": "1"}))
    await world.create(PODS, pod("claims", {}, resourceClaims=later))
    await world.create(PODS, pod("implicit", implicit))
    system = pod("system", {"nvidia.com/gpumem": "1"})
    await world.create("/api/v1/namespaces/kube-system/pods", system, dryRun="All")
    assert world.pods == ["claims", "implicit"]


async def test_commit_is_asked_once_an_allocation(world: World) -> None:
    """New allocations of our driver, and nothing else that happens to claims."""
    await world.allocate("ours", names.DRIVER)
    await world.allocate("theirs", "nic.example.com")
    user = {"resource": "pods", "name": "x", "uid": "1"}
    await world.change(f"{CLAIMS}/ours/status", {"status": {"reservedFor": [user]}})
    await world.change(f"{CLAIMS}/ours", {"metadata": {"annotations": {"a": "b"}}})
    await world.allocate("dry", names.DRIVER, dryRun="All")
    assert world.commits == [("ours", False), ("dry", True)]


async def test_commit_is_refused(world: World) -> None:
    """A plain 403 with our sentence, and the claim is as it was."""
    with pytest.raises(Forbidden, match="no room on any node"):
        await world.allocate("refused", names.DRIVER)
    assert "allocation" not in (await world.get(f"{CLAIMS}/refused")).get("status", {})


async def test_hook_is_down(kubeconfig: str, tmp_path: Path) -> None:
    """No allocation passes without the ledger; pods are created, without a gate."""
    async with open_session(kubeconfig) as session:
        world = World(Rest(session, policy=ONCE))
        async with _served(world, tmp_path):
            pass
        with pytest.raises(KubeError, match=r"commit\.quadrant\.dev"):
            await world.allocate("down", names.DRIVER)
        later = [{"name": "x", "resourceClaimTemplateName": "later"}]
        stored = await world.create(PODS, pod("down", {}, resourceClaims=later))
        assert "schedulingGates" not in stored["spec"]
        for place in (PODS, CLAIMS, WEBHOOKS):
            await world.rest.delete(place, params={"gracePeriodSeconds": "0"})
        with pytest.raises(NotFound):
            await world.get(f"{WEBHOOKS}/{COMMIT_CONFIGURATION}")
