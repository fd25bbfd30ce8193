"""What is taken: seen committed, or answered and perhaps still on its way to etcd.

The rules and the attacks they come from are in the design ("The ledger"). The ledger does no I/O;
the time it is given is a monotonic clock in seconds. Resource versions compare as numbers
(KEP-5504).

A claim is in one of three states here: *free* (nothing held), *answered* (one hold for every
answer that may still land), *committed* (one hold, seen on the watch).
"""

from collections.abc import Container, Iterable, Mapping

import msgspec

from driver.controller.book import Book, Results, Touched
from driver.model.allocation import DeviceUse
from driver.model.ids import ClaimUid, DeviceId, ObjectKey
from driver.model.resourceclaim import AllocationResult, ResourceClaim

# The API server bounds a write at 34 s; an answer may land until then (rule 4).
ANSWER_MAY_LAND_S = 40.0
# A whole device that was released may still be in the scheduler's book (rule 7).
QUARANTINE_S = 5.0


class AnswerKey(msgspec.Struct, frozen=True):
    """What makes two questions the same question (rules 1 and 2).

    `base` is the resource version of the object that the write replaces; `proposal` is what the
    scheduler proposed apart from the choice of our devices, the node included.
    """

    base: int
    proposal: str


class Answer(msgspec.Struct, frozen=True):
    """An allocation that we told the API server to store."""

    claim: ObjectKey
    uid: ClaimUid
    key: AnswerKey
    results: Results
    at: float
    repeated: bool = False


class _Hold(msgspec.Struct, frozen=True):
    """A key of the book: who holds, and which answer it rests on (None: seen committed)."""

    uid: ClaimUid
    answer: AnswerKey | None = None


class Commitment(msgspec.Struct, frozen=True):
    """A claim's allocation as last seen."""

    claim: ObjectKey
    allocation: AllocationResult
    since: float


class Ledger:
    """Everything that is or may become taken. All methods are idempotent."""

    def __init__(self, touched: Touched | None = None) -> None:
        self._book: Book[_Hold] = Book(touched)
        self._seen: dict[ClaimUid, int] = {}
        self._committed: dict[ClaimUid, Commitment] = {}
        self._answers: dict[ClaimUid, dict[AnswerKey, Answer]] = {}
        self._released: dict[DeviceId, float] = {}

    # What happened

    def observe(self, claim: ResourceClaim, now: float) -> Answer | None:
        """A claim as the API server has it, from a watch, a list, a GET or a write's reply.

        Older news than what is known of the claim, or than the base of an answer, changes nothing.
        Returns the answer that has landed with it, the first time that this is seen.
        """
        uid, version = ClaimUid(claim.metadata.uid), int(claim.metadata.resource_version)
        if version <= self._newest(uid):
            return None
        landed = self._landed(uid, claim)
        self._seen[uid] = version
        allocation = claim.status.allocation
        if allocation is None:
            self._uncommit(uid, now)
        else:
            # Held anew before the answers go, so that nothing looks released in between.
            self._commit(uid, claim, allocation, now)
        self._drop_answers(uid, now)
        return landed

    def base(self, uid: ClaimUid, version: int, now: float) -> bool:
        """The API server asks about a write on top of this version, in which the claim is free.

        False when something newer is known: that write cannot land. Otherwise the claim was free
        at this version, so an older allocation is gone and no older answer can land any more.
        """
        if version < self._newest(uid) or (
            version == self._seen.get(uid) and uid in self._committed
        ):
            return False
        self._uncommit(uid, now)
        for key in [key for key in self._answers.get(uid, {}) if key.base < version]:
            self._drop_answer(uid, key, now)
        self._seen[uid] = version
        return True

    def answer(self, answer: Answer) -> None:
        """Hold what was answered until it is seen or can no longer land."""
        self._answers.setdefault(answer.uid, {})[answer.key] = answer
        self._book.put(_Hold(answer.uid, answer.key), answer.results)

    def repeat(self, uid: ClaimUid, key: AnswerKey) -> None:
        """The same answer was given again: it can no longer be taken back."""
        answer = self._answers[uid][key]
        self._answers[uid][key] = msgspec.structs.replace(answer, repeated=True)

    def take_back(self, uid: ClaimUid, key: AnswerKey | None, now: float) -> None:
        """This answer, given once, has certainly not arrived: nothing can come of it (rule 6)."""
        answer = self.find(uid, key) if key is not None else None
        if answer is not None and not answer.repeated:
            self._drop_answer(uid, answer.key, now)

    def forget(self, uid: ClaimUid, version: int, now: float) -> None:
        """The claim was deleted at this version."""
        if version > self._newest(uid):
            self.gone(uid, now)

    def gone(self, uid: ClaimUid, now: float) -> None:
        """The claim does not exist, now and for ever: a live look found no such UID."""
        self._uncommit(uid, now)
        self._drop_answers(uid, now)
        self._seen.pop(uid, None)

    # What follows

    def find(self, uid: ClaimUid, key: AnswerKey) -> Answer | None:
        """The answer given to this very question, while it holds."""
        return self._answers.get(uid, {}).get(key)

    def use_for(self, uid: ClaimUid) -> Mapping[DeviceId, DeviceUse]:
        """What all the others use: the book without this claim's own holds."""
        own = [_Hold(uid, key) for key in self._answers.get(uid, ())]
        return self._book.without([*own, _Hold(uid)])

    def use(self) -> Mapping[DeviceId, DeviceUse]:
        """What is in use, all holds counted."""
        return self._book.use

    def quarantined(self, devices: Iterable[DeviceId], now: float) -> frozenset[DeviceId]:
        """Those that were whole and released so lately that the scheduler may not know (rule 7)."""
        released = self._released
        return frozenset(
            [one for one in devices if one in released and now - released[one] < QUARANTINE_S]
        )

    def holder(self, device: DeviceId) -> Commitment | None:
        """The claim that was seen to hold this whole device, if there is one."""
        for hold in self._book.holders(device):
            whole = any(
                result.device_id() == device and result.share_id is None and not result.admin_access
                for result in self._book.results(hold)
            )
            if hold.answer is None and whole:
                return self._committed[hold.uid]
        return None

    def seen(self, uid: ClaimUid) -> int:
        """The newest version of the claim that is known; 0 when none is."""
        return self._newest(uid)

    def answered(self, uid: ClaimUid) -> bool:
        """Whether an allocation of this claim is on its way to etcd."""
        return uid in self._answers

    def overdue(self, now: float) -> tuple[Answer, ...]:
        """Answers that should have been seen by now; they need a live look (rule 4)."""
        return tuple(
            answer
            for answers in self._answers.values()
            for answer in answers.values()
            if now - answer.at >= ANSWER_MAY_LAND_S
        )

    def outstanding(self) -> int:
        """How many answers may still land."""
        return sum(len(answers) for answers in self._answers.values())

    def tidy(self, existing: Container[ClaimUid], now: float) -> None:
        """Forget releases that are long past, and versions of claims that exist no more.

        A question that comes in after its claim was deleted leaves such a version behind.
        """
        self._released = {
            device: at for device, at in self._released.items() if now - at < QUARANTINE_S
        }
        for uid in [uid for uid in self._seen if uid not in existing]:
            if uid not in self._committed and uid not in self._answers:
                del self._seen[uid]

    # How

    def _landed(self, uid: ClaimUid, claim: ResourceClaim) -> Answer | None:
        answers, allocation = self._answers.get(uid), claim.status.allocation
        if answers is None or allocation is None:
            return None
        stored = [result.device_id() for result in allocation.devices.results]
        same = (
            answer
            for answer in answers.values()
            if [result.device_id() for result in answer.results] == stored
        )
        return max(same, key=lambda answer: answer.at, default=None)

    def _newest(self, uid: ClaimUid) -> int:
        bases = (key.base for key in self._answers.get(uid, ()))
        return max(self._seen.get(uid, 0), max(bases, default=0))

    def _commit(
        self, uid: ClaimUid, claim: ResourceClaim, allocation: AllocationResult, now: float
    ) -> None:
        known = self._committed.get(uid)
        since = known.since if known and known.allocation == allocation else now
        key = ObjectKey(claim.metadata.namespace, claim.metadata.name)
        self._committed[uid] = Commitment(key, allocation, since)
        self._released_now(self._book.put(_Hold(uid), allocation.devices.results), now)

    def _uncommit(self, uid: ClaimUid, now: float) -> None:
        self._committed.pop(uid, None)
        self._released_now(self._book.drop(_Hold(uid)), now)

    def _drop_answers(self, uid: ClaimUid, now: float) -> None:
        for key in list(self._answers.get(uid, ())):
            self._drop_answer(uid, key, now)

    def _drop_answer(self, uid: ClaimUid, key: AnswerKey, now: float) -> None:
        self._released_now(self._book.drop(_Hold(uid, key)), now)
        del self._answers[uid][key]
        if not self._answers[uid]:
            del self._answers[uid]

    def _released_now(self, devices: tuple[DeviceId, ...], now: float) -> None:
        for device in devices:
            self._released[device] = now
