"""A cluster as the controller knows it, filled to a level, and the commits that come in.

Plays the scheduler (first fit on some node with room), etcd (what is allowed is stored and seen)
and the users (for every new claim an old one goes, so the cluster stays as full as it is).
"""

import itertools
import random
from collections import defaultdict

import msgspec

from driver.controller.cluster import Cluster
from driver.controller.commit import Allow, Ruling, decide
from driver.controller.policies import Defaults
from driver.controller.proposal import read
from driver.model.core import Node
from driver.model.deviceclass import DeviceClass
from driver.model.ids import ClaimUid, ObjectKey
from driver.model.resourceclaim import ResourceClaim
from driver.model.resourceslice import ResourceSlice
from driver.simulator.releases import LATEST, release
from driver.wire.admission import AdmissionReview
from driver.wire.decode import convert, decode
from driver.wire.encode import builtins
from hack.benchmarks.fleet import (
    CARDS,
    DRIVER,
    NAMESPACE,
    SHARES_A_CARD,
    Fleet,
    Json,
    Place,
    device_class,
    node,
)

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
        self._versions = itertools.count(1)
        self._holders: dict[str, Place] = {}
        self._free: defaultdict[str, int] = defaultdict(int)
        self._used: defaultdict[tuple[str, int], int] = defaultdict(int)
        self.cluster = Cluster(
            driver=DRIVER,
            features=release(LATEST).features,
            defaults=Defaults(node=policy, gpu=policy),
        )
        self._furnish()
        for place in fleet.taken(level, seed):
            claim = self._claim()
            self.stored(claim, fleet.allocated(claim, place))

    def question(self) -> Question:
        """The next commit: the scheduler's first fit on some node that has room."""
        claim = self._claim()
        self.cluster.put_claim(convert(ResourceClaim, claim), self.now)
        name = self._chance.choice(self.fleet.names)
        while not self._free[name]:
            name = self._chance.choice(self.fleet.names)
        a_card = SHARES_A_CARD if self.fleet.shared else 1
        card = next(index for index in range(CARDS) if self._used[name, index] < a_card)
        proposed = self.fleet.allocated(claim, Place(name, card))
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
        (result,) = ruling.results
        stored = msgspec.json.decode(msgspec.json.encode(question.proposed))
        stored["status"]["allocation"]["devices"]["results"] = [builtins(result)]
        self.stored(question.claim, stored)
        self._release(self._chance.choice(list(self._holders)))
        self.now += _APART_S

    def stored(self, claim: Json, stored: Json) -> None:
        """The claim is seen with its devices."""
        seen = convert(ResourceClaim, {**stored, "metadata": self._next(claim)})
        self.cluster.put_claim(seen, self.now)
        allocation = seen.status.allocation
        if allocation is None:
            raise ValueError("a claim of the benchmark was stored without devices")
        (result,) = allocation.devices.results
        place = Place(result.pool, int(result.device.removeprefix("gpu-")))
        self._holders[claim["metadata"]["name"]] = place
        self._count(place, 1)

    def _release(self, name: str) -> None:
        place = self._holders.pop(name)
        self._count(place, -1)
        self.cluster.remove_claim(
            ObjectKey(NAMESPACE, name), ClaimUid(f"uid-{name}"), next(self._versions), self.now
        )

    def _count(self, place: Place, more: int) -> None:
        self._used[place.node, place.card] += more
        self._free[place.node] -= more

    def _claim(self) -> Json:
        return self.fleet.claim(f"c{next(self._numbers)}", next(self._versions))

    def _next(self, claim: Json) -> Json:
        metadata: Json = claim["metadata"]
        return {**metadata, "resourceVersion": str(next(self._versions))}

    def _furnish(self) -> None:
        self.cluster.put_class(convert(DeviceClass, device_class()))
        for published in self.fleet.slices():
            self.cluster.put_slice(convert(ResourceSlice, published))
        places = CARDS * (SHARES_A_CARD if self.fleet.shared else 1)
        for name in self.fleet.names:
            self.cluster.put_node(convert(Node, node(name)))
            self._free[name] = places


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
