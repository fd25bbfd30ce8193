"""The ResourceClaimTemplates of translated pods in the cluster: created, kept alive, collected.

What a template says is decided in `translate_template`.
"""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

import msgspec

from driver.controller import translate_template
from driver.kube.errors import AlreadyExists, Conflict, NotFound
from driver.kube.rest import Preconditions, Rest
from driver.model import names
from driver.model.core import Pod
from driver.model.ids import ObjectKey
from driver.model.resourceclaim import ResourceClaimTemplate
from driver.wire import decode
from driver.wire.patch import MERGE_PATCH

_API = "/apis/resource.k8s.io/v1"
# The replicas of a workload are created in bursts; within one, the first asks the API server. Not
# for long: a template that somebody deletes meanwhile would leave its pods waiting for ever.
_SURE_FOR = timedelta(seconds=1)


class Templates:
    """Templates that pods are about to be created from. `now` tells the time, with its zone."""

    def __init__(self, rest: Rest, now: Callable[[], datetime]) -> None:
        self._rest, self._now = rest, now
        self._sure: dict[ObjectKey, datetime] = {}

    async def ensure(self, wanted: ResourceClaimTemplate) -> None:
        """Let it exist and count as used from now on; raises the errors of `driver.kube`.

        Idempotent, and safe to be cancelled.
        """
        now = self._now()
        self._sure = {key: at for key, at in self._sure.items() if now - at < _SURE_FOR}
        key = ObjectKey(wanted.metadata.namespace, wanted.metadata.name)
        if key not in self._sure:
            await self._ensure(wanted, now)
            self._sure[key] = now

    async def _ensure(self, wanted: ResourceClaimTemplate, now: datetime) -> None:
        place = _collection(wanted.metadata.namespace)
        path = f"{place}/{wanted.metadata.name}"
        try:
            await self._touch(path, now)
        except NotFound:
            body = translate_template.body(wanted, now)
            try:
                await self._rest.create(place, body, repeatable=True)
            except AlreadyExists:
                # Another replica of ours was faster, or an earlier try of this call got through.
                await self._touch(path, now)

    async def _touch(self, path: str, now: datetime) -> None:
        found = decode.decode(ResourceClaimTemplate, await self._rest.get(path))
        if translate_template.touch_due(found, now):
            annotations = {names.LAST_USED: translate_template.stamp(now)}
            body = msgspec.json.encode({"metadata": {"annotations": annotations}})
            await self._rest.patch(path, body, MERGE_PATCH, repeatable=True)

    async def collect(self, pods: Iterable[Pod]) -> int:
        """Delete the templates that no pod uses any more; returns how many.

        `pods` are all pods that carry our label, as the watch has them.
        """
        params = {"labelSelector": names.TEMPLATE_LABEL}
        found: list[ResourceClaimTemplate] = []
        async for page in self._rest.pages(f"{_API}/resourceclaimtemplates", params=params):
            found += [decode.decode(ResourceClaimTemplate, item) for item in page.items or ()]
        deleted = 0
        for item in translate_template.unused(found, pods, self._now()):
            deleted += await self._delete(item)
        return deleted

    async def _delete(self, item: ResourceClaimTemplate) -> bool:
        preconditions = Preconditions(
            uid=item.metadata.uid, resource_version=item.metadata.resource_version
        )
        path = f"{_collection(item.metadata.namespace)}/{item.metadata.name}"
        try:
            await self._rest.delete(path, preconditions=preconditions)
        except (Conflict, NotFound):
            # A pod is being created from it this moment, or it is gone already.
            return False
        return True


def _collection(namespace: str) -> str:
    return f"{_API}/namespaces/{namespace}/resourceclaimtemplates"
