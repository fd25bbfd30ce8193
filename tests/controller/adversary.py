"""A small world that does everything to the ledger that a real cluster may do.

It has an etcd with optimistic concurrency, an API server whose writes land at once, late or never
(but never later than 34 s), a scheduler with a stale cache and a set without counts for a book,
and a watch that delays, repeats and loses events. `play` runs one seed; etcd itself checks after
every write that no device is used twice and no capacity is exceeded.
"""

import random
from dataclasses import dataclass, field

import msgspec

from driver.allocator.inventory import Inventory
from driver.controller.ledger import Answer, AnswerKey, Ledger
from driver.controller.results import overbooked
from driver.model.allocation import Features
from driver.model.api import ObjectMeta
from driver.model.ids import ClaimUid, DeviceId, ObjectKey
from driver.model.quantity import whole
from driver.model.resourceclaim import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimStatus,
)
from driver.model.resourceslice import Device, DeviceCapacity, ResourcePool, ResourceSlice
from driver.model.resourceslice import ResourceSliceSpec as Spec

WRITE_BOUND_S = 34.0
TAKEOVER_WAIT_S = 36.0
DRIVER = "gpu.test"
CAPACITY = 2
NODES = ("a", "b")
Result = DeviceRequestAllocationResult


def _slice(node: str) -> ResourceSlice:
    card = Device(
        name="shared",
        allow_multiple_allocations=True,
        capacity={"memory": DeviceCapacity(value=whole(CAPACITY))},
    )
    devices = (Device(name="gpu-0"), Device(name="gpu-1"), card)
    pool = ResourcePool(name=node, generation=1, resource_slice_count=1)
    spec = Spec(driver=DRIVER, pool=pool, node_name=node, devices=devices)
    return ResourceSlice(metadata=ObjectMeta(name=f"slice-{node}"), spec=spec)


INVENTORY = Inventory(Features(consumable_capacity=True))
for _node in NODES:
    INVENTORY.put_slice(_slice(_node))


class DoubleUseError(AssertionError):
    """The one thing that must never happen."""


@dataclass
class Stored:
    """A claim in etcd."""

    version: int
    results: tuple[Result, ...] | None = None
    shared: bool = False


@dataclass
class Write:
    """A status update on its way to etcd, already answered by the hook."""

    claim: str
    base: int
    results: tuple[Result, ...]
    sent_at: float


@dataclass
class World:
    """Everything outside the ledger, and the ledger of the present leader."""

    chance: random.Random
    ledger: Ledger = field(default_factory=Ledger)
    now: float = 1000.0
    version: int = 10
    etcd: dict[str, Stored] = field(default_factory=dict)
    flying: list[Write] = field(default_factory=list)
    # What the ledger's watch and the scheduler's watch have not delivered yet.
    ledger_news: list[tuple[str, Stored | None, int]] = field(default_factory=list)
    told: list[tuple[str, Stored | None, int]] = field(default_factory=list)
    scheduler_news: list[tuple[str, Stored | None, int]] = field(default_factory=list)
    scheduler_cache: dict[str, Stored] = field(default_factory=dict)
    scheduler_book: set[DeviceId] = field(default_factory=set)
    # Answers that were made but not written, as this process is about to find out.
    unwritten: list[tuple[ClaimUid, AnswerKey]] = field(default_factory=list)
    last_answer: float = float("-inf")
    made: int = 0
    commits: int = 0

    # etcd

    def store(self, name: str, new: Stored | None) -> None:
        """Write a claim (None deletes it), tell both watches, and check the whole state."""
        if new is None:
            del self.etcd[name]
        else:
            self.etcd[name] = new
        news = (name, new, self.version)
        self.ledger_news.append(news)
        self.scheduler_news.append(news)
        self._check()

    def _check(self) -> None:
        whole_devices: set[DeviceId] = set()
        shares: dict[DeviceId, int] = {}
        for stored in self.etcd.values():
            for result in stored.results or ():
                device = result.device_id()
                if result.share_id is not None:
                    shares[device] = shares.get(device, 0) + 1
                elif device in whole_devices:
                    raise DoubleUseError(device)
                else:
                    whole_devices.add(device)
        if any(count > CAPACITY for count in shares.values()):
            raise DoubleUseError(shares)

    def _next(self) -> int:
        self.version += self.chance.choice((1, 1, 1, 7))
        return self.version

    # What can happen

    def create(self) -> None:
        """A claim appears."""
        self.made += 1
        name = f"c{self.made}"
        self.store(name, Stored(self._next(), shared=self.chance.random() < 0.4))

    def touch(self) -> None:
        """Somebody changes a claim's metadata: its version rises, its allocation stays."""
        if self.etcd:
            name = self.chance.choice(list(self.etcd))
            old = self.etcd[name]
            self.store(name, Stored(self._next(), old.results, old.shared))

    def release(self) -> None:
        """A claim is de-allocated, or deleted."""
        used = [name for name, stored in self.etcd.items() if stored.results is not None]
        if used:
            name = self.chance.choice(used)
            version = self._next()
            gone = self.chance.random() < 0.5
            self.store(name, None if gone else Stored(version, None, self.etcd[name].shared))

    def delete_free(self) -> None:
        """A claim that holds nothing is deleted, perhaps with an answer still on its way."""
        free = [name for name, stored in self.etcd.items() if stored.results is None]
        if free:
            name = self.chance.choice(free)
            self._next()
            self.store(name, None)

    def schedule(self) -> None:
        """The scheduler picks a claim from its cache and asks to commit its first fit."""
        free = [name for name, stored in self.scheduler_cache.items() if stored.results is None]
        if not free:
            return
        name = self.chance.choice(free)
        cached = self.scheduler_cache[name]
        node = self.chance.choice(NODES)
        pick = self._scheduler_pick(cached, node)
        if pick is not None:
            self._ask(name, cached, pick)

    def _scheduler_pick(self, cached: Stored, node: str) -> DeviceId | None:
        if cached.shared:
            return DeviceId(DRIVER, node, "shared")
        for device in (DeviceId(DRIVER, node, f"gpu-{i}") for i in (0, 1)):
            if device not in self.scheduler_book:
                return device
        # Its book is a set without counts: now and then it believes in a device that is held.
        return DeviceId(DRIVER, node, "gpu-0") if self.chance.random() < 0.3 else None

    def _ask(self, name: str, cached: Stored, pick: DeviceId) -> None:
        """The API server calls the hook, perhaps twice for the same write."""
        if name not in self.etcd:
            return
        # The API server takes the old object from its cache first, and may find it outdated.
        base = self.chance.choice((self.etcd[name].version, cached.version))
        uid, key = ClaimUid(name), AnswerKey(base, pick.pool)
        for _ in range(self.chance.choice((1, 1, 2))):
            made = self.ledger.find(uid, key) is None
            results = self.hook(name, base, cached, pick)
            if results is None or base != cached.version:
                continue
            if self.chance.random() < 0.1:
                # The caller had hung up. Only an answer that this call made is taken back for it.
                self.unwritten += [(uid, key)] if made else []
            else:
                self.flying.append(Write(name, base, results, self.now))

    def hook(
        self, name: str, base: int, cached: Stored, pick: DeviceId
    ) -> tuple[Result, ...] | None:
        """The hook with the simplest of policies: the first device that is free."""
        uid = ClaimUid(name)
        if base != cached.version or not self.ledger.base(uid, base, self.now):
            return ()
        key = AnswerKey(base, pick.pool)
        known = self.ledger.find(uid, key)
        if known is None:
            known = self._choose(uid, key, cached, pick)
            if known is None:
                return None
            self.ledger.answer(known)
        else:
            self.ledger.repeat(uid, key)
        self.last_answer = self.now
        return known.results

    def _choose(
        self, uid: ClaimUid, key: AnswerKey, cached: Stored, pick: DeviceId
    ) -> Answer | None:
        use = self.ledger.use_for(uid)
        names = ["shared"] if cached.shared else ["gpu-0", "gpu-1"]
        self.chance.shuffle(names)
        for name in names:
            device = DeviceId(DRIVER, key.proposal, name)
            if device != pick and self.ledger.quarantined({device}, self.now):
                continue
            result = _result(device, f"{uid}-{key.base}" if cached.shared else None)
            if overbooked([result], use, INVENTORY) is None:
                return Answer(ObjectKey("ns", uid), uid, key, (result,), self.now)
        return None

    def take_back(self) -> None:
        """Rule 6: what was certainly not written is taken back, unless it was given again."""
        while self.unwritten:
            self.ledger.take_back(*self.unwritten.pop(), self.now)

    def land(self) -> None:
        """One of the flying writes reaches etcd, or fails, or comes to nothing."""
        if not self.flying:
            return
        write = self.flying.pop(self.chance.randrange(len(self.flying)))
        lost = self.chance.random() < 0.15 or self.now - write.sent_at > WRITE_BOUND_S
        stored = self.etcd.get(write.claim)
        if lost or stored is None or stored.version != write.base:
            return
        if not write.results:
            raise AssertionError("a write that could not land was allowed without a hold, and did")
        self.commits += 1
        self.scheduler_book |= {result.device_id() for result in write.results}
        self.store(write.claim, Stored(self._next(), write.results, stored.shared))

    def watch(self) -> None:
        """The ledger's watch delivers some of its news, perhaps old ones once more."""
        if self.told and self.chance.random() < 0.2:
            self._tell(self.chance.choice(self.told))
        for _ in range(self.chance.randint(1, 4)):
            if self.ledger_news:
                news = self.ledger_news.pop(0)
                self.told.append(news)
                self._tell(news)

    def _tell(self, news: tuple[str, Stored | None, int]) -> None:
        name, stored, version = news
        if stored is None:
            self.ledger.forget(ClaimUid(name), version, self.now)
        else:
            self.ledger.observe(_claim(name, stored), self.now)

    def relist(self) -> None:
        """The watch breaks: news are lost, and a list tells what is there and what is gone."""
        known = {name for name, _, _ in self.told}
        self.ledger_news.clear()
        for name in known - set(self.etcd):
            self._tell((name, None, self.version))
        for name, stored in self.etcd.items():
            self.told.append((name, stored, stored.version))
            self._tell(self.told[-1])

    def scheduler_watch(self) -> None:
        """The scheduler's cache follows, and so does its book, without counts."""
        for _ in range(self.chance.randint(1, 4)):
            if not self.scheduler_news:
                return
            name, stored, _ = self.scheduler_news.pop(0)
            before = self.scheduler_cache.pop(name, None)
            if before is not None and (stored is None or stored.results is None):
                self.scheduler_book -= {r.device_id() for r in before.results or ()}
            if stored is not None:
                self.scheduler_cache[name] = stored
                self.scheduler_book |= {r.device_id() for r in stored.results or ()}

    def pass_time(self) -> None:
        """Some time goes by, mostly little."""
        self.now += self.chance.choice((0.1, 0.5, 2.0, 6.0, 20.0, 41.0))

    def expire(self) -> None:
        """Rule 4: a live look at every answer that is overdue, then a fence, then it falls."""
        for answer in self.ledger.overdue(self.now):
            stored = self.etcd.get(answer.uid)
            if stored is None:
                self.ledger.gone(answer.uid, self.now)
                continue
            if stored.version == answer.key.base:
                self.store(answer.uid, Stored(self._next(), stored.results, stored.shared))
            self.ledger.observe(_claim(answer.uid, self.etcd[answer.uid]), self.now)

    def take_over(self) -> None:
        """Rule 5: another leader with an empty ledger waits, or fences; then it answers."""
        self.ledger = Ledger()
        self.ledger_news.clear()
        self.told.clear()
        self.unwritten.clear()
        if self.chance.random() < 0.5:
            self.now = max(self.now, self.last_answer + TAKEOVER_WAIT_S)
        else:
            self.fence_all()
        for name, stored in self.etcd.items():
            self.told.append((name, stored, stored.version))
            self._tell(self.told[-1])

    def fence_all(self) -> None:
        """Every claim that is free gets a new version, so that no earlier answer can land."""
        for name, stored in list(self.etcd.items()):
            if stored.results is None:
                self.store(name, Stored(self._next(), None, stored.shared))


# What happens, as often as it stands here; names, so that a test can break one of them.
MOVES = (
    *["schedule"] * 8,
    *["land"] * 6,
    *["watch"] * 4,
    *["scheduler_watch"] * 4,
    *["create"] * 4,
    *["release"] * 2,
    "delete_free",
    "touch",
    "relist",
    "expire",
    *["take_back"] * 2,
    "take_over",
    *["pass_time"] * 2,
)


def play(seed: int, moves: int = 40) -> World:
    """One run; raises `DoubleUseError` when the ledger let something happen."""
    world = World(random.Random(seed))  # noqa: S311 # a seed must give the same run again
    for _ in range(3):
        world.create()
    world.scheduler_watch()
    for move in world.chance.choices(MOVES, k=moves):
        getattr(world, move)()
    return world


def _result(device: DeviceId, share: str | None) -> Result:
    consumed = {} if share is None else {"memory": whole(1)}
    return Result(
        request="gpu",
        driver=device.driver,
        pool=device.pool,
        device=device.device,
        share_id=share,
        consumed_capacity=consumed,
    )


def _claim(name: str, stored: Stored) -> ResourceClaim:
    metadata = ObjectMeta(name=name, namespace="ns", uid=name, resource_version=str(stored.version))
    claim = ResourceClaim(metadata=metadata)
    if stored.results is None:
        return claim
    allocation = AllocationResult(devices=DeviceAllocationResult(results=stored.results))
    status = ResourceClaimStatus(allocation=allocation)
    return msgspec.structs.replace(claim, status=status)
