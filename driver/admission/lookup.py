"""What the review of a pod rests on: from the watches, and templates live from the API server."""

import asyncio
from collections.abc import Iterable

from driver.controller.cluster import Cluster
from driver.controller.pods import Referenced, ReviewContext
from driver.controller.translate import ResourceNames
from driver.kube.errors import NotFound
from driver.kube.rest import Rest
from driver.model.api import ObjectMeta
from driver.model.ids import ObjectKey
from driver.model.resourceclaim import ResourceClaimTemplate
from driver.wire.decode import decode

# Of the 5 s that the API server waits, two tries must fit.
_TIMEOUT_S = 2.0
# A workload's pods come in bursts. What a template asks for cannot be changed, so a moment later
# it is still the same, unless somebody has made another one of the same name.
TEMPLATE_HOLDS_S = 1.0


class Lookup:
    """Gathers the context of one pod. Raises `driver.kube.errors.KubeError`."""

    def __init__(
        self, rest: Rest, cluster: Cluster, *, device_class: str, resources: ResourceNames
    ) -> None:
        self._rest = rest
        self._cluster = cluster
        self._device_class = device_class
        self._resources = resources
        # Templates that were read lately, oldest first, and until when they may be used.
        self._recent: dict[ObjectKey, tuple[float, ResourceClaimTemplate]] = {}

    async def __call__(self, namespace: str, referenced: Referenced) -> ReviewContext:
        """The context for a pod in this namespace that is about these claims and templates."""
        cluster = self._cluster
        places = {name: ObjectKey(namespace, name) for name in referenced.claims}
        return ReviewContext(
            namespace=cluster.namespaces.get(namespace, ObjectMeta(name=namespace)),
            defaults=cluster.defaults,
            features=cluster.features,
            classes=cluster.classes,
            claims={
                name: cluster.claims[place]
                for name, place in places.items()
                if place in cluster.claims
            },
            templates=await self._templates(namespace, referenced.templates),
            cards=cluster.cards(),
            extended_resources_served=cluster.extended_resources,
            plugin_serves=cluster.has_plugin_for(self._resources.count),
            resources=self._resources,
            driver=cluster.driver,
            device_class=self._device_class,
            registry=cluster.registry,
        )

    async def _templates(
        self, namespace: str, wanted: Iterable[str]
    ) -> dict[str, ResourceClaimTemplate]:
        keys = [ObjectKey(namespace, name) for name in wanted]
        found = await asyncio.gather(*(self._template(key) for key in keys))
        return {template.metadata.name: template for template in found if template is not None}

    async def _template(self, key: ObjectKey) -> ResourceClaimTemplate | None:
        now = asyncio.get_running_loop().time
        self._forget(now())
        if key in self._recent:
            return self._recent[key][1]
        template = await self._read(key)
        if template is not None:
            self._recent.pop(key, None)
            self._recent[key] = now() + TEMPLATE_HOLDS_S, template
        return template

    def _forget(self, now: float) -> None:
        for key in list(self._recent):
            if self._recent[key][0] > now:
                break
            del self._recent[key]

    async def _read(self, key: ObjectKey) -> ResourceClaimTemplate | None:
        path = (
            f"/apis/resource.k8s.io/v1/namespaces/{key.namespace}/resourceclaimtemplates/{key.name}"
        )
        try:
            return decode(ResourceClaimTemplate, await self._rest.get(path, timeout=_TIMEOUT_S))
        except NotFound:
            return None
