"""What the checks rest on: read once, each kind by itself, so that a missing right hides only that.

Nothing is written; one pod is created in a dry run, which the API server does not keep.
"""

import asyncio
import re
from typing import Generic, TypeVar

import msgspec

from driver.cli.checkup.objects import (
    EndpointSlice,
    Named,
    WebhookConfiguration,
    Workload,
)
from driver.cli.live.listing import ForbiddenError, Reader
from driver.kube.discovery import CLASSES, SLICES, Served, discover
from driver.kube.errors import ApiError, Forbidden, KubeError, NotFound
from driver.kube.lease import Lease
from driver.kube.rest import Rest
from driver.model import names
from driver.model.core import Node, Pod
from driver.model.deviceclass import DeviceClass
from driver.model.resourceslice import ResourceSlice
from driver.wire.decode import decode

T = TypeVar("T")
COMMIT, PODS, CONFIGS = "quadrant-commit", "quadrant-pods", "quadrant-configs"
LEASE = "quadrant-controller"
ACCOUNTS = ("quadrant-controller", "quadrant-node")
POLICIES = ("quadrant-node-slices", "quadrant-node-claims", "quadrant-controller-probes")
DEFAULT_NAMESPACE = "quadrant-system"
# As the API server's authoriser says it.
_FORBIDDEN = re.compile(
    r'cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)"(?: in API group "(?P<group>[^"]*)")?'
)
_OURS = "app.kubernetes.io/name=quadrant"
_MUTATING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
_LEASES = "/apis/coordination.k8s.io/v1/leases"


def may_not(error: Exception) -> str:
    """A missing right in few words; other errors as they are."""
    match = _FORBIDDEN.search(str(error))
    if match is None:
        return str(error)
    group = f".{match['group']}" if match["group"] else ""
    return f"you may not {match['verb']} {match['resource']}{group}"


class Seen(msgspec.Struct, Generic[T], frozen=True):
    """Objects, or why they could not be looked at."""

    items: tuple[T, ...] = ()
    unseen: str = ""


class Trial(msgspec.Struct, frozen=True):
    """What became of a pod in a dry run: gated, not gated, or refused with a sentence."""

    gated: bool = False
    refused: str = ""
    unseen: str = ""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All that was found. `namespace` is the one that the controller runs in."""

    driver: str
    namespace: str
    served: Served
    slices: Seen[ResourceSlice]
    nodes: Seen[Node]
    classes: Seen[DeviceClass]
    namespaces: Seen[Named]
    pods: Seen[Pod]
    webhooks: Seen[WebhookConfiguration]
    policies: Seen[Named]
    leases: Seen[Lease]
    deployments: Seen[Workload]
    daemonsets: Seen[Workload]
    plugins: Seen[Pod]
    controllers: Seen[Pod]
    endpoints: Seen[EndpointSlice]
    trial: Trial


async def gather(rest: Rest, *, driver: str, namespace: str | None) -> Evidence:
    """Read everything; raises `KubeError` when the API server cannot be asked at all."""
    served = await discover(rest, driver=driver)
    reader = _Tolerant(rest)
    webhooks = await _webhooks(reader)
    leases = await reader.all(_LEASES, Lease, field=f"metadata.name={LEASE}", of=namespace)
    home = namespace or _home(webhooks, leases)
    apps = f"/apis/apps/v1/namespaces/{home}"
    parts = "app.kubernetes.io/component"
    slices, nodes, classes, namespaces, pods, policies = await asyncio.gather(
        reader.all(SLICES, ResourceSlice),
        reader.all("/api/v1/nodes", Node),
        reader.all(CLASSES, DeviceClass),
        reader.all("/api/v1/namespaces", Named),
        reader.all("/api/v1/pods", Pod, label=names.POD_LABEL),
        reader.some(_POLICIES, Named, POLICIES),
    )
    deployments, daemonsets, plugins, controllers, endpoints = await asyncio.gather(
        reader.all(f"{apps}/deployments", Workload, label=_OURS),
        reader.all(f"{apps}/daemonsets", Workload, label=_OURS),
        reader.all("/api/v1/pods", Pod, label=f"{_OURS},{parts}=node", of=home),
        reader.all("/api/v1/pods", Pod, label=f"{_OURS},{parts}=controller", of=home),
        reader.all("/apis/discovery.k8s.io/v1/endpointslices", EndpointSlice, of=home),
    )
    return Evidence(
        driver=driver,
        namespace=home,
        served=served,
        slices=slices,
        nodes=nodes,
        classes=classes,
        namespaces=namespaces,
        pods=pods,
        webhooks=webhooks,
        policies=policies,
        leases=leases,
        deployments=deployments,
        daemonsets=daemonsets,
        plugins=plugins,
        controllers=controllers,
        endpoints=endpoints,
        trial=await _try(rest, home),
    )


async def _webhooks(reader: "_Tolerant") -> Seen[WebhookConfiguration]:
    """Those that change objects, and the one that only checks them."""
    changing = await reader.some(_MUTATING, WebhookConfiguration, (COMMIT, PODS))
    checking = await reader.some(_VALIDATING, WebhookConfiguration, (CONFIGS,))
    return Seen((*changing.items, *checking.items), changing.unseen or checking.unseen)


def _home(webhooks: Seen[WebhookConfiguration], leases: Seen[Lease]) -> str:
    """The namespace of the installation: of the webhooks' Service, of the lease, or the usual."""
    for configuration in webhooks.items:
        for webhook in configuration.webhooks:
            if webhook.client_config.service is not None:
                return webhook.client_config.service.namespace
    for lease in leases.items:
        return lease.metadata.namespace
    return DEFAULT_NAMESPACE


class _Tolerant:
    """Lists kinds; a right that is missing becomes a word in the place of the objects."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def all(
        self, path: str, kind: type[T], *, label: str = "", field: str = "", of: str | None = None
    ) -> Seen[T]:
        """All objects of a kind, of one namespace where `of` is given."""
        if of:
            head, _, resource = path.rpartition("/")
            path = f"{head}/namespaces/{of}/{resource}"
        if field:
            return await self._by_field(path, kind, field)
        try:
            return Seen(await Reader(self._rest).all(path, kind, label_selector=label))
        except (ForbiddenError, NotFound) as error:
            return Seen(unseen=may_not(error))

    async def some(self, path: str, kind: type[T], wanted: tuple[str, ...]) -> Seen[T]:
        """Those of these names that exist: the right to get single ones is enough."""
        found: list[T] = []
        for name in wanted:
            try:
                found.append(decode(kind, await self._rest.get(f"{path}/{name}")))
            except NotFound:
                continue
            except Forbidden as error:
                return Seen(unseen=may_not(error))
        return Seen(tuple(found))

    async def _by_field(self, path: str, kind: type[T], field: str) -> Seen[T]:
        try:
            pages = self._rest.pages(path, params={"fieldSelector": field})
            raw = [one async for page in pages for one in page.items or ()]
            return Seen(tuple(decode(kind, one) for one in raw))
        except (Forbidden, NotFound) as error:
            return Seen(unseen=may_not(error))


async def _try(rest: Rest, home: str) -> Trial:
    """Create a pod that names a claim, without keeping it: our webhook must give it the gate."""
    place = rest.session.endpoint.namespace
    if place in ("kube-system", home):
        return Trial(unseen=f"pods of the context's namespace {place} are not reviewed")
    try:
        stored = await rest.create(
            f"/api/v1/namespaces/{place}/pods", _POD, params={"dryRun": "All"}
        )
    except ApiError as error:
        if isinstance(error, Forbidden) and "webhook" not in str(error):
            return Trial(unseen=may_not(error))
        return Trial(refused=str(error))
    except KubeError as error:
        return Trial(unseen=str(error))
    gates = decode(Pod, stored).spec.scheduling_gates
    return Trial(gated=any(gate.name == names.PLACEMENT_GATE for gate in gates))


# Passes the strictest Pod Security Standard, too.
_POD = msgspec.json.encode(
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "quadrant-doctor-"},
        "spec": {
            "restartPolicy": "Never",
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65534,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "resourceClaims": [
                {"name": "gpu", "resourceClaimTemplateName": "quadrant-doctor-is-not-there"}
            ],
            "containers": [
                {
                    "name": "main",
                    "image": "none",
                    "resources": {"claims": [{"name": "gpu"}]},
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }
            ],
        },
    }
)
