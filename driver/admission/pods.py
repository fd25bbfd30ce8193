"""The handler of `POST /pods`: looks up what the decision needs, decides, creates the template."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from driver.admission.server import Allowed, Answer, Call, Denied
from driver.controller import translate, translate_patch
from driver.controller.pods import Referenced, Refused, ReviewContext, referenced, review_pod
from driver.controller.templates import Templates
from driver.controller.translate import ResourceNames
from driver.kube.errors import KubeError
from driver.wire.admission import AdmissionRequest

# What is left of the caller's patience for a refusal, in seconds.
_TO_ANSWER = 0.2

Look = Callable[[str, Referenced], Awaitable[ReviewContext]]
"""Gives the context for a pod in a namespace that is about these claims and templates."""


class PodHandler:
    """Reviews pods one by one; any number of calls may run at once."""

    def __init__(self, look: Look, templates: Templates, resources: ResourceNames) -> None:
        self._look, self._templates, self._resources = look, templates, resources

    async def handle(self, request: AdmissionRequest, call: Call) -> Answer:
        """Decide on a pod; a dry run creates no template.

        When the API server fails us, a pod with HAMi's resources is refused, since untranslated
        it would never start. Others are let go without a gate: the error goes to the server, and
        the webhook's failurePolicy is Ignore.
        """
        pod = msgspec.json.decode(request.object)
        try:
            async with asyncio.timeout_at(call.deadline - _TO_ANSWER):
                return await self._review(pod, request)
        except (KubeError, TimeoutError) as error:
            if not self._in_hami_words(pod):
                raise
            reason = str(error) or "the API server did not answer in time"
            return Denied(f"what the pod asks for cannot be made a claim now: {reason}")

    async def _review(self, pod: Mapping[str, Any], request: AdmissionRequest) -> Answer:
        context = await self._look(request.namespace, referenced(pod))
        verdict = review_pod(pod, context)
        if isinstance(verdict, Refused):
            return Denied(verdict.message)
        if verdict.template is not None and not request.dry_run:
            await self._templates.ensure(verdict.template)
        return Allowed(verdict.operations, verdict.warnings)

    def _in_hami_words(self, pod: Mapping[str, Any]) -> bool:
        return any(
            translate.present(container, self._resources)
            for _, _, container in translate_patch.containers(pod)
        )
