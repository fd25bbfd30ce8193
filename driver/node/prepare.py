"""How a claim becomes usable on this node, and stops being so: the order of the steps.

Prepare: read the claim, reserve (checkpoint says "intent"), set up the cards, CDI file, checkpoint
says "done". The reservation comes first, so that of two claims for one device only one ever has a
file. Unprepare: CDI file, cards set back, then the reservation; a device is free only when nothing
points to it.
Each step can be repeated, so that a call after a crash anywhere ends in the same state.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import msgspec
import structlog

from driver.model.resourceclaim import ResourceClaim
from driver.node.claims import ClaimRef, NodeFacts, entry, usable_uid
from driver.node.containers import cdi
from driver.node.containers.cdifiles import CdiFiles
from driver.node.errors import ClaimRefusedError, DoubleUseError
from driver.node.faults import FaultPoint, Reach, pass_by
from driver.node.held import PreparedClaim, conflict, resumed
from driver.node.sharing.rules import disagreement
from driver.node.sharing.setup import CardSetup
from driver.node.state.checkpoint import Book, Record, drop, put
from driver.node.state.store import ClaimStore
from driver.obs import tracing

# The claim as the API server has it now, None when there is none of that name.
GetClaim = Callable[[str, str], Awaitable[ResourceClaim | None]]
# Called for every claim that wanted what another one holds.
OnDoubleUse = Callable[[ClaimRef, str], None]

log = structlog.get_logger(__name__)


class _Turn:
    """The calls that are about one claim: one at a time changes it."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.calls = 0
        self.unprepared = 0


class Preparer:
    """Prepares and unprepares single claims; any number of calls may run at the same time."""

    def __init__(
        self,
        store: ClaimStore,
        files: CdiFiles,
        setup: CardSetup,
        *,
        get_claim: GetClaim,
        node: Callable[[], NodeFacts],
        on_double_use: OnDoubleUse,
        reach: Reach = pass_by,
    ) -> None:
        self._store = store
        self._files = files
        self._setup = setup
        self._get_claim = get_claim
        self._node = node
        self._on_double_use = on_double_use
        self._reach = reach
        self._turns: dict[str, _Turn] = {}

    async def prepare(self, asked: ClaimRef) -> tuple[cdi.AnswerDevice, ...]:
        """Have the claim prepared, durably, and say with which CDI devices.

        Idempotent: the same allocation gives the same answer and writes nothing again, but makes
        up for a CDI file that is gone. Raises `ClaimRefusedError` when the claim must not be
        prepared, `HardwareError` when its cards do not do what it needs, `StorageError` when the
        disk does not take it, and what reading the claim raises.
        """
        with self._presence(asked.uid) as turn:
            unprepared, moment = turn.unprepared, self._store.dropped.now()
            claim = await self._get_claim(asked.namespace, asked.name)
            with tracing.span("prepare", _consumer(claim), claim=str(asked)):
                async with turn.lock, self._store.turns.held(asked.uid):
                    if turn.unprepared != unprepared:
                        raise _late(asked)
                    return await self._become(entry(asked, claim, self._node()), moment)

    async def _become(self, wanted: PreparedClaim, moment: int) -> tuple[cdi.AnswerDevice, ...]:
        ready = await self._setup.set_up(await self._reserve(wanted, moment))
        await asyncio.to_thread(self._files.write, _done(ready))
        await self._store.apply(lambda book: _finish(book, ready))
        self._reach(FaultPoint.BEFORE_ANSWER)
        return cdi.answer(self._node().driver, ready)

    async def unprepare(self, asked: ClaimRef) -> None:
        """Have nothing left of the claim; what is gone already is no error.

        Raises `StorageError` when the disk does not let go of it, `HardwareError` when a card
        does not.
        """
        if not usable_uid(asked.uid):
            return  # Nothing was ever prepared under such a name.
        with self._presence(asked.uid) as turn:
            # A prepare that the kubelet has given up may still be reading the claim. It must
            # neither hold this call up nor come true after it.
            turn.unprepared += 1
            async with turn.lock, self._store.turns.held(asked.uid):
                await self._undo(asked.uid)
                self._reach(FaultPoint.BEFORE_ANSWER)

    async def _undo(self, uid: str) -> None:
        found, _ = await asyncio.gather(self._find(uid), asyncio.to_thread(self._files.remove, uid))
        if found is None:
            await self._drop(uid)
            return
        async with self._setup.set_back(found):
            await self._drop(uid)

    async def _drop(self, uid: str) -> None:
        # Written also where nothing is held: another instance may just be reading the claim.
        await self._store.apply(lambda _book: drop(uid))

    async def _reserve(self, wanted: PreparedClaim, moment: int) -> PreparedClaim:
        """Enter the claim; as it stands in the checkpoint now, with what was begun for it.

        Refused when another instance has unprepared it after `moment`.
        """
        asked = ClaimRef(wanted.namespace, wanted.name, wanted.uid)
        reserved: list[PreparedClaim] = []

        def change(book: Book) -> Record | None:
            if self._store.dropped.since(wanted.uid, moment):
                raise _late(asked)
            held = book.get(wanted.uid)
            if held is not None and _is_another(held, wanted):
                return None
            reserved.append(resumed(wanted, held))
            return _reserve(book, reserved[0])

        try:
            await self._store.apply(change)
        except DoubleUseError as error:
            self._on_double_use(asked, str(error))
            raise
        if not reserved:
            # The kubelet asks only for claims that no running pod uses, so the old devices are
            # free; what was set up on them must not stay.
            log.warning("claim was allocated anew without being unprepared", claim=str(wanted))
            await self._undo(wanted.uid)
            return await self._reserve(wanted, moment)
        return reserved[0]

    async def _find(self, uid: str) -> PreparedClaim | None:
        found: list[PreparedClaim | None] = []
        await self._store.apply(lambda book: found.append(book.get(uid)))
        return found[0]

    @contextmanager
    def _presence(self, uid: str) -> Iterator[_Turn]:
        """What the calls that are now about one claim have in common."""
        turn = self._turns.setdefault(uid, _Turn())
        turn.calls += 1
        try:
            yield turn
        finally:
            turn.calls -= 1
            if not turn.calls:
                del self._turns[uid]


def _late(asked: ClaimRef) -> ClaimRefusedError:
    return ClaimRefusedError(
        f"claim {asked} was unprepared while it was read; if a pod still needs it, the kubelet "
        "asks again"
    )


def _consumer(claim: ResourceClaim | None) -> str:
    """The UID of the pod that a claim is prepared for; the first, where several share it."""
    reserved = claim.status.reserved_for if claim is not None else ()
    return next((one.uid for one in reserved if one.resource == "pods"), "")


def _done(claim: PreparedClaim) -> PreparedClaim:
    return msgspec.structs.replace(claim, phase="done")


def _reserve(book: Book, wanted: PreparedClaim) -> Record | None:
    reason = conflict(wanted, book.rivals(wanted))
    if reason is not None:
        raise DoubleUseError(
            f"claim {wanted} must wait: {reason}. It was allocated while still in use here, and is "
            "free again when the other claim's pods have ended on this node"
        )
    reason = disagreement(wanted, book.rivals(wanted))
    if reason is not None:
        raise ClaimRefusedError(f"claim {wanted} cannot be used as configured: {reason}")
    held = book.get(wanted.uid)
    if held is not None and _done(held) == _done(wanted):
        return None
    return put(wanted)


def _is_another(held: PreparedClaim, wanted: PreparedClaim) -> bool:
    """Whether a claim has other devices now than those that it holds here."""
    return held.boot == wanted.boot and _shares(held) != _shares(wanted)


def _shares(claim: PreparedClaim) -> list[tuple[str, str | None]]:
    return [(device.device, device.share_id) for device in claim.devices]


def _finish(book: Book, wanted: PreparedClaim) -> Record | None:
    done = _done(wanted)
    return None if book.get(wanted.uid) == done else put(done)
