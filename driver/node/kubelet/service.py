"""The kubelet's DRAPlugin service, in both versions that kubelets speak.

Translates messages and bounds how much happens at once; what preparing means is
`driver.node.prepare`'s business. Every claim that is asked for is in the answer: the kubelet
takes a missing one for a failure of the whole call.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from types import ModuleType
from typing import Generic, Protocol, TypeVar

import grpc.aio
import structlog

from driver._proto import (
    dra_v1_pb2,
    dra_v1_pb2_grpc,
    dra_v1beta1_pb2,
    dra_v1beta1_pb2_grpc,
)
from driver.model.errors import QuadrantError
from driver.node.claims import ClaimRef
from driver.node.containers.cdi import AnswerDevice
from driver.obs.logging import operation

# The names under which the services are registered, best first: the kubelet takes the first one
# that it knows.
SUPPORTED_SERVICES = ("v1.DRAPlugin", "v1beta1.DRAPlugin")

# The kubelet gives a call 45 s; an answer that names the slow claim is worth more than its timeout.
_PATIENCE_S = 40.0

T = TypeVar("T")

log = structlog.get_logger(__name__)


class Told(Protocol):
    """Told of every claim that was worked on, and of the seconds that it took with its waiting."""

    def __call__(self, *, done: bool, seconds: float) -> None:
        """Returns at once."""


def _nobody(*, done: bool, seconds: float) -> None:
    """Counts nothing."""


class ClaimWork(Generic[T]):
    """Does one thing to claims: side by side up to a limit, and to its end once begun.

    A call that the kubelet gives up does not stop what it began: steps on disk cannot be taken
    back half-way, and the kubelet's next call waits for them.
    """

    def __init__(
        self, limit: int, work: Callable[[ClaimRef], Awaitable[T]], *, told: Told = _nobody
    ) -> None:
        self._limit = asyncio.Semaphore(limit)
        self._work = work
        self._told = told
        self._running: set[asyncio.Task[T | str]] = set()

    async def each(self, claims: Iterable[ClaimRef]) -> dict[str, T | str]:
        """The result for every claim by UID, or the sentence that says why there is none."""
        distinct = {claim.uid: claim for claim in claims}
        results = await asyncio.gather(*(self._one(claim) for claim in distinct.values()))
        return dict(zip(distinct, results, strict=True))

    async def drain(self) -> None:
        """Wait for everything that was begun."""
        while self._running:
            await asyncio.wait(self._running)

    async def _one(self, claim: ClaimRef) -> T | str:
        task = asyncio.ensure_future(self._bounded(claim))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await asyncio.shield(task)
        except TimeoutError:
            return f"claim {claim} is not ready after {_PATIENCE_S:.0f} s; work on it goes on"

    async def _bounded(self, claim: ClaimRef) -> T | str:
        began = time.monotonic()
        result = await self._in_turn(claim)
        self._told(done=not isinstance(result, str), seconds=time.monotonic() - began)
        return result

    async def _in_turn(self, claim: ClaimRef) -> T | str:
        async with self._limit:
            with operation():
                return await self._answer(claim)

    async def _answer(self, claim: ClaimRef) -> T | str:
        try:
            return await self._work(claim)
        except QuadrantError as error:
            log.warning("claim refused", claim=str(claim), error=str(error))
            return str(error)
        except Exception as error:
            # The other claims of the call, and the next call, must not suffer for it.
            log.exception("claim failed", claim=str(claim))
            return f"claim {claim} failed inside the driver: {type(error).__name__}: {error}"


Preparing = ClaimWork[tuple[AnswerDevice, ...]]
Unpreparing = ClaimWork[None]


class DraService:
    """DRAPlugin in one version; `messages` are the generated messages of that version.

    Preparing and unpreparing have limits of their own: while prepares wait for an API server that
    does not answer, pods can still end.
    """

    def __init__(
        self, messages: ModuleType, *, preparing: Preparing, unpreparing: Unpreparing
    ) -> None:
        self._messages = messages
        self._preparing = preparing
        self._unpreparing = unpreparing
        self._knows_shares = "share_id" in messages.Device.DESCRIPTOR.fields_by_name

    async def NodePrepareResources(  # noqa: N802  (the service's name)
        self,
        request: dra_v1_pb2.NodePrepareResourcesRequest,
        _context: grpc.aio.ServicerContext[object, object],
    ) -> object:
        """Prepare every claim; the errors are in the answer, one per claim."""
        results = await self._preparing.each(_refs(request))
        answers = {uid: self._prepared(result) for uid, result in results.items()}
        return self._messages.NodePrepareResourcesResponse(claims=answers)

    async def NodeUnprepareResources(  # noqa: N802  (the service's name)
        self,
        request: dra_v1_pb2.NodeUnprepareResourcesRequest,
        _context: grpc.aio.ServicerContext[object, object],
    ) -> object:
        """Unprepare every claim; the errors are in the answer, one per claim."""
        results = await self._unpreparing.each(_refs(request))
        message = self._messages.NodeUnprepareResourceResponse
        answers = {uid: message(error=result or "") for uid, result in results.items()}
        return self._messages.NodeUnprepareResourcesResponse(claims=answers)

    def _prepared(self, result: tuple[AnswerDevice, ...] | str) -> object:
        message = self._messages.NodePrepareResourceResponse
        if isinstance(result, str):
            return message(error=result)
        return message(devices=[self._device(device) for device in result])

    def _device(self, device: AnswerDevice) -> object:
        share = {"share_id": device.share_id} if self._knows_shares and device.share_id else {}
        return self._messages.Device(
            request_names=device.requests,
            pool_name=device.pool,
            device_name=device.device,
            cdi_device_ids=device.cdi_devices,
            **share,
        )


def add_services(
    server: grpc.aio.Server, *, preparing: Preparing, unpreparing: Unpreparing
) -> None:
    """Have `server` answer for both versions."""
    v1 = DraService(dra_v1_pb2, preparing=preparing, unpreparing=unpreparing)
    v1beta1 = DraService(dra_v1beta1_pb2, preparing=preparing, unpreparing=unpreparing)
    dra_v1_pb2_grpc.add_DRAPluginServicer_to_server(v1, server)
    dra_v1beta1_pb2_grpc.add_DRAPluginServicer_to_server(v1beta1, server)


def _refs(
    request: dra_v1_pb2.NodePrepareResourcesRequest | dra_v1_pb2.NodeUnprepareResourcesRequest,
) -> list[ClaimRef]:
    return [ClaimRef(claim.namespace, claim.name, claim.uid) for claim in request.claims]
