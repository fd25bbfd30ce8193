"""A cluster as the controller knows it, filled to a level, and the commits that come in.

Plays the scheduler (first fit on some node with room), etcd (what is allowed is stored and seen)
and the users (for every new claim an old one goes, so the cluster stays as full as it is).
"""

import itertools
import random
from collections import Counter, defaultdict

import msgspec

from driver.controller.cluster import Cluster
from driver.controller.commit import Allow, Ruling, decide
from driver.controller.policies import Defaults
from driver.controller.proposal import read
from driver.model.core import Node
from driver.model.deviceclass import DeviceClass
from driver.model.ids import ClaimUid, ObjectKey
from driver.model.names import DRIVER
from driver.model.resourceclaim import ResourceClaim
from driver.model.resourceslice import ResourceSlice
from driver.simulator.releases import LATEST, release
from driver.wire.admission import AdmissionReview
from driver.wire.decode import convert, decode
from driver.wire.encode import builtins
from hack.benchmarks.fleet import Fleet, Place, device_class, node
from hack.benchmarks.workloads import NAMESPACE, Json

# Fifty commits a second: more than a stock scheduler does.
_APART_S = 0.02


class Question(msgspec.Struct, frozen=True):
    """One commit: the claim as it was and as it should be, and the review that is sent."""

    claim: Json
    proposed: Json
    review: bytes


class Stage:
    """One cluster under measurement; every step is the same for the same seed."""

    def __init__(self, fleet: Fleet, *, level: float, policy: str, seed: int) -> None:
        self.fleet = fleet
        self.now = 1000.0
        self._chance = random.Random(seed)  # noqa: S311 # a seed must give the same run again
        self._numbers = itertools.count(1)
        # Claims that may go, and the devices of each.
        self._holders: list[tuple[str, tuple[tuple[str, int], ...]]] = []
        self._free: defaultdict[str, int] = defaultdict(int)
        self._used: Counter[tuple[str, int]] = Counter()
        self.cluster = Cluster(
            driver=DRIVER,
            features=release(LATEST).features,
            defaults=Defaults(node=policy, gpu=policy),
        )
        self._furnish()
        self._fill(fleet.taken(level, seed))

    def follow(self, policy: str) -> None:
        """From now on this policy decides, on both axes."""
        self.cluster.defaults = Defaults(node=policy, gpu=policy)

    def question(self) -> Question:
        """The next commit: the scheduler's first fit on some node that has room."""
        workload = self.fleet.workload
        claim = workload.claim(*self._next())
        self.show(msgspec.json.encode(claim))
        name = self._chance.choice(self.fleet.names)
        while not self._free[name]:
            name = self._chance.choice(self.fleet.names)
        spot = next(
            cards
            for cards in self.fleet.spots(name)
            if all(self._used[name, card] < workload.shares for card in cards)
        )
        proposed = workload.allocated(claim, name, spot)
        return Question(claim, proposed, _review(claim, proposed))

    def answer(self, question: Question) -> Ruling:
        """What the controller does with one review, from its bytes to the ledger."""
        request = decode(AdmissionReview, question.review).request
        proposal = read(request)
        if proposal is None:
            raise ValueError("a review of the benchmark allocates nothing")
        return decide(
            proposal, cluster=self.cluster, now=self.now, share_id=lambda: "of-the-benchmark"
        )

    def land(self, question: Question, ruling: Ruling) -> None:
        """The answer reaches etcd and the watch; another claim goes, and time passes."""
        if not isinstance(ruling, Allow):
            raise TypeError(f"the benchmark's commit was refused: {ruling.reason}")
        stored = msgspec.json.decode(msgspec.json.encode(question.proposed))
        results = [builtins(result) for result in ruling.results]
        stored["status"]["allocation"]["devices"]["results"] = results
        self.show(self.stored(stored))
        self.release()

    def stored(self, claim: Json) -> bytes:
        """The claim with its devices, as the watch is about to show it."""
        version = str(next(self._numbers))
        found = claim["status"]["allocation"]["devices"]["results"]
        cards = tuple((one["pool"], int(one["device"].removeprefix("gpu-"))) for one in found)
        self._holders.append((claim["metadata"]["name"], cards))
        self._count(cards, 1)
        metadata = {**claim["metadata"], "resourceVersion": version}
        return msgspec.json.encode({**claim, "metadata": metadata})

    def show(self, document: bytes) -> None:
        """The watch shows a claim."""
        self.cluster.put_claim(decode(ResourceClaim, document), self.now)

    def release(self) -> None:
        """Some claim goes, and time passes."""
        index = self._chance.randrange(len(self._holders))
        self._holders[index], self._holders[-1] = self._holders[-1], self._holders[index]
        name, cards = self._holders.pop()
        self._count(cards, -1)
        self.cluster.remove_claim(
            ObjectKey(NAMESPACE, name), ClaimUid(f"uid-{name}"), next(self._numbers), self.now
        )
        self.now += _APART_S

    def _count(self, cards: tuple[tuple[str, int], ...], more: int) -> None:
        for card in cards:
            self._used[card] += more
        self._free[cards[0][0]] -= more

    def _next(self) -> tuple[str, int]:
        number = next(self._numbers)
        return f"c{number}", number

    def _furnish(self) -> None:
        self.cluster.put_class(convert(DeviceClass, device_class()))
        for published in self.fleet.slices():
            self.cluster.put_slice(convert(ResourceSlice, published))
        for name in self.fleet.names:
            self.cluster.put_node(convert(Node, node(name)))
            self._free[name] = len(self.fleet.spots(name)) * self.fleet.workload.shares

    def _fill(self, taken: list[Place]) -> None:
        for place in taken:
            claim = self.fleet.holder(place, next(self._numbers))
            self.show(msgspec.json.encode(claim) if place.other else self.stored(claim))


def _review(old: Json, new: Json) -> bytes:
    metadata = old["metadata"]
    request = {
        "uid": f"review-of-{metadata['name']}",
        "operation": "UPDATE",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "subResource": "status",
        "object": new,
        "oldObject": old,
    }
    return msgspec.json.encode(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    )
