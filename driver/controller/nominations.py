"""What pods will take that have a node by our word but no devices yet.

For scoring only: a nomination binds nobody, and the commit hook does not look at it. What a claim
was promised falls as soon as the ledger knows better.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeVar, overload

import msgspec

from driver.controller.book import Book, Results, Touched
from driver.model import names
from driver.model.allocation import DeviceUse
from driver.model.ids import DeviceId
from driver.model.resourceclaim import AllocationResult, ResourceClaim

T = TypeVar("T")
# Stands for the UID of the special claim of a pod, which does not exist yet.
SPECIAL = ""


class _Promise(NamedTuple):
    pod: str
    claim: str


class Nomination(msgspec.Struct, frozen=True):
    """A node for a pod, and what its claims are expected to get there.

    Claims go by their UID, the special one by `SPECIAL`. `version` is that of the node's facts (see
    `driver.controller.cluster`) on which it rests.
    """

    pod: str
    node: str
    promised: Mapping[str, AllocationResult]
    version: int = 0


class Nominations:
    """At most one nomination for each pod, by UID. `touched` is told of every device concerned."""

    def __init__(self, touched: Touched | None = None) -> None:
        self._book: Book[_Promise] = Book(touched)
        self._by_pod: dict[str, Nomination] = {}
        self._pods_of_claim: dict[str, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._by_pod)

    def put(self, nomination: Nomination) -> None:
        """Expect this, in place of what was expected for the pod before."""
        self.drop(nomination.pod)
        self._by_pod[nomination.pod] = nomination
        for claim, allocation in nomination.promised.items():
            self._pods_of_claim.setdefault(claim, {})[nomination.pod] = None
            promise = _Promise(nomination.pod, claim)
            self._book.put(promise, _as_shares(promise, allocation))

    def drop(self, pod: str) -> None:
        """Nothing is expected for this pod."""
        nomination = self._by_pod.pop(pod, None)
        for claim in nomination.promised if nomination is not None else ():
            self._forget(pod, claim)

    def settle(self, claim: ResourceClaim) -> None:
        """This claim has its devices: the ledger counts them from here on.

        The pod keeps the nomination for what its other claims are promised.
        """
        for pod, promised in list(self._promised_to(claim)):
            nomination = self._by_pod[pod]
            self._forget(pod, promised)
            rest = {key: what for key, what in nomination.promised.items() if key != promised}
            self._by_pod[pod] = msgspec.structs.replace(nomination, promised=rest)

    def _promised_to(self, claim: ResourceClaim) -> Iterator[tuple[str, str]]:
        """The pods that were promised something for this claim, and under which key."""
        if claim.metadata.annotations.get(names.EXTENDED_CLAIM) == "true":
            for owner in claim.metadata.owner_references:
                nomination = self._by_pod.get(owner.uid)
                if nomination is not None and SPECIAL in nomination.promised:
                    yield owner.uid, SPECIAL
        for pod in self._pods_of_claim.get(claim.metadata.uid, ()):
            yield pod, claim.metadata.uid

    def get(self, pod: str) -> Nomination | None:
        """What is expected for this pod."""
        return self._by_pod.get(pod)

    def promised(self, claim: str) -> AllocationResult | None:
        """What a claim with this UID is expected to get, for whatever pod."""
        for pod in self._pods_of_claim.get(claim, ()):
            return self._by_pod[pod].promised[claim]
        return None

    def use(self) -> Mapping[DeviceId, DeviceUse]:
        """What all of them will take."""
        return self._book.use

    def _forget(self, pod: str, claim: str) -> None:
        self._book.drop(_Promise(pod, claim))
        pods = self._pods_of_claim[claim]
        del pods[pod]
        if not pods:
            del self._pods_of_claim[claim]


def _as_shares(promise: _Promise, allocation: AllocationResult) -> Results:
    """The results with IDs for the shares that have none, so that each counts as one."""
    return tuple(
        msgspec.structs.replace(result, share_id=f"{promise.pod}/{promise.claim}/{number}")
        if result.share_id == ""
        else result
        for number, result in enumerate(allocation.devices.results)
    )


class Together(Mapping[DeviceId, DeviceUse]):
    """What is in use and what is going to be, as one; a live view of both."""

    def __init__(
        self, now: Mapping[DeviceId, DeviceUse], soon: Mapping[DeviceId, DeviceUse]
    ) -> None:
        self._now = now
        self._soon = soon

    def __getitem__(self, device: DeviceId) -> DeviceUse:
        found = self.get(device)
        if found is None:
            raise KeyError(device)
        return found

    @overload
    def get(self, device: DeviceId, /) -> DeviceUse | None: ...
    @overload
    def get(self, device: DeviceId, default: DeviceUse | T, /) -> DeviceUse | T: ...
    def get(self, device: DeviceId, default: object = None, /) -> object:
        """Its use, else the default: asked of free devices most of the time, so without a raise."""
        now, soon = self._now.get(device), self._soon.get(device)
        if now is None or soon is None:
            return now or soon or default
        consumed = dict(now.consumed)
        for name, amount in soon.consumed.items():
            consumed[name] = consumed[name] + amount if name in consumed else amount
        return DeviceUse(
            exclusive=now.exclusive or soon.exclusive,
            shares=now.shares | soon.shares,
            consumed=consumed,
        )

    def __iter__(self) -> Iterator[DeviceId]:
        yield from self._now
        yield from (device for device in self._soon if device not in self._now)

    def __len__(self) -> int:
        return sum(1 for _ in self)
