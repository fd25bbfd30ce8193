"""The label on the leader's pod, by which the Service of the commit hook finds it.

It only sends the API server's calls to the right replica. Whether an answer counts is decided by
`term`: a label that is late, or on two pods for a moment, costs refusals and nothing else.
"""

from collections.abc import Callable
from typing import Never

import msgspec
import structlog

from driver.kube.backoff import Clock, SystemClock
from driver.kube.errors import NotFound
from driver.kube.rest import Rest
from driver.model.core import Pod
from driver.model.errors import QuadrantError
from driver.model.ids import ObjectKey
from driver.model.names import LEADER_LABEL
from driver.wire.decode import decode
from driver.wire.patch import MERGE_PATCH

_log = structlog.get_logger(__name__)

BORNE = "true"
LOOK_S = 0.5
# A leader that was cut off may have written late, and people edit labels.
AGAIN_S = 10.0
TIMEOUT_S = 3.0


class LeaderLabel:
    """Keeps the label on this pod while the process leads, and on no other pod.

    `leads` tells whether it leads now. `run` it as a task; `leave` before the process ends.
    """

    def __init__(
        self, rest: Rest, pod: ObjectKey, *, leads: Callable[[], bool], clock: Clock | None = None
    ) -> None:
        self._rest = rest
        self._pod = pod
        self._leads = leads
        self._clock = clock or SystemClock()
        self._left = False
        # Unknown at first: the process before this one may have died while it led.
        self._borne: bool | None = None
        self._written_at = 0.0

    async def run(self) -> Never:
        """Follow who leads, for ever; what fails is logged and tried again."""
        while True:
            if not self._left and self._is_due(leads := self._leads()):
                await self._try(bear=leads)
            await self._clock.sleep(LOOK_S)

    async def leave(self) -> None:
        """Take the label off for good, before this process stops to answer."""
        self._left = True
        if self._borne is not False:
            await self._try(bear=False)

    def _is_due(self, leads: bool) -> bool:  # noqa: FBT001 - the only thing that it depends on
        late = self._clock.now() >= self._written_at + AGAIN_S
        return leads != self._borne or (leads and late)

    async def _try(self, *, bear: bool) -> None:
        try:
            await self._write(self._pod.name, BORNE if bear else None)
            if bear:
                await self._take_from_others()
        except QuadrantError as error:
            _log.warning("leader label not written", pod=str(self._pod), error=str(error))
            return
        self._borne = bear
        self._written_at = self._clock.now()

    async def _take_from_others(self) -> None:
        selector = {"labelSelector": f"{LEADER_LABEL}={BORNE}"}
        async for page in self._rest.pages(self._collection, params=selector, timeout=TIMEOUT_S):
            for item in page.items or ():
                name = decode(Pod, item).metadata.name
                if name != self._pod.name:
                    _log.info("label of an earlier leader taken off", pod=name)
                    await self._write(name, None)

    async def _write(self, pod: str, value: str | None) -> None:
        body = msgspec.json.encode({"metadata": {"labels": {LEADER_LABEL: value}}})
        try:
            await self._rest.patch(
                f"{self._collection}/{pod}", body, MERGE_PATCH, timeout=TIMEOUT_S, repeatable=True
            )
        except NotFound:
            # A pod that is gone gets no calls.
            return

    @property
    def _collection(self) -> str:
        return f"/api/v1/namespaces/{self._pod.namespace}/pods"
