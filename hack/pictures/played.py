"""The same arrivals and departures, placed by kube-scheduler alone or by a policy of ours.

The code that decides is the code of a cluster, by way of `quadrant simulate`. Kube-scheduler
chooses nodes by scores that know nothing of devices. The two of its default scores that differ
between such nodes stand for them, as in the trace simulator: CPU and memory least allocated, and
evenly used.
"""

import heapq
from collections.abc import Iterable
from pathlib import Path

import msgspec

from driver.cli.simulation import creation, placing, scheduling
from driver.cli.simulation.apiserver import Raw
from driver.cli.simulation.documents import ManifestError, read
from driver.cli.simulation.inventory import machines
from driver.cli.simulation.manifests import Manifests, sort
from driver.cli.simulation.report import CardUse
from driver.cli.simulation.scheduling import Scheduled
from driver.cli.simulation.summary import card_uses
from driver.cli.simulation.world import NOW, Rules, World
from driver.controller.footprint import Footprint, footprint
from driver.controller.pods import Refused
from driver.controller.policies import Defaults
from driver.model.core import Pod
from driver.model.ids import ClaimUid, NodeName, ObjectKey
from driver.simulator import workloads
from driver.simulator.releases import LATEST, release
from driver.simulator.trace.placer import StockPlacer
from driver.simulator.trace.state import State
from driver.simulator.trace.tasks import Ask, Machine
from driver.wire import decode
from hack.pictures.mix import SHARES, Arrival

_ROOT = Path(__file__).resolve().parents[2]
FILES = (_ROOT / "examples" / "busy-cluster", _ROOT / "deviceclasses" / "gpu.yaml")
NOBODY = Defaults(node="none", gpu="none")
COMPACT = Defaults(node="compact", gpu="compact")
_MILLI, _MIB = 10**6, 10**9 * 1024 * 1024


class Running(msgspec.Struct, frozen=True):
    """A pod that has its devices."""

    kind: str
    uid: str
    placed: Scheduled


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What has become of a cluster: its cards, who has which, and how it went.

    `holders` are the pods, by the number of their arrival, that have all of a card (its node and
    name); `pods` counts those that run, `turned_away` those that found no place. `empty` is how
    many machines were wholly free after each arrival. `room` says how many jobs of so many cards,
    each on one machine, can be placed besides, one after the other.
    """

    cards: tuple[CardUse, ...]
    holders: dict[tuple[str, str], int]
    pods: int
    turned_away: int
    empty: tuple[int, ...]
    room: dict[int, int]


def play(arrivals: Iterable[Arrival], policy: Defaults) -> Outcome:
    """Place all of them, and let each leave in its time. Who finds no place is gone."""
    cluster = _Cluster(policy)
    leaving: list[tuple[int, int, Running]] = []
    empty: list[int] = []
    turned_away = 0
    for number, arrival in enumerate(arrivals):
        while leaving and leaving[0][0] <= number:
            cluster.end(heapq.heappop(leaving)[2])
        running = cluster.start(arrival.kind)
        if running is None:
            turned_away += 1
        else:
            heapq.heappush(leaving, (arrival.leaves, number, running))
        empty.append(cluster.empty_machines())
    return Outcome(
        cards=cluster.cards(),
        holders={
            card: number
            for _, number, running in leaving
            if running.kind not in SHARES
            for card in _cards_of(running)
        },
        pods=len(leaving),
        turned_away=turned_away,
        empty=tuple(empty),
        room={8: cluster.room("train-large"), 4: cluster.room("train")},
    )


def _cards_of(running: Running) -> Iterable[tuple[str, str]]:
    for claim in running.placed.claims:
        allocation = claim.status.allocation
        for result in allocation.devices.results if allocation is not None else ():
            yield result.pool, result.device


class _Cluster:
    """A simulated cluster in which pods also end."""

    def __init__(self, policy: Defaults) -> None:
        manifests: Manifests = sort(read(map(str, FILES)))
        rules = Rules(release=release(LATEST), defaults=policy)
        self._world = World(manifests, machines(manifests, rules.driver), rules)
        self._nodes = self._world.nodes
        self._by_scheduler = policy == NOBODY
        self._manifests = {
            document.name: next(iter(workloads.pods(document.raw)))
            for document in manifests.workloads
        }

    def start(self, kind: str) -> Running | None:
        """One more pod of this kind; None where it finds no place."""
        world = self._world
        made = creation.create(world, self._manifests[kind])
        if isinstance(made, Refused):
            raise ManifestError(f"{kind} of {FILES[0]} is refused: {made.message}")
        placed = placing.place(world, world.pod(made.pod)).pod
        if self._by_scheduler:
            world.nodes = self._ranked(placed)
        outcome = scheduling.schedule(world, placed)
        if isinstance(outcome, Scheduled):
            return Running(kind, placed["metadata"]["uid"], outcome)
        self._forget(placed["metadata"]["uid"])
        return None

    def end(self, running: Running) -> None:
        """The pod is gone, and so are its claims."""
        cluster = self._world.cluster
        for claim in running.placed.claims:
            metadata = claim.metadata
            cluster.remove_claim(
                ObjectKey(metadata.namespace, metadata.name),
                ClaimUid(metadata.uid),
                version=int(metadata.resource_version) + 1,
                now=NOW,
            )
        self._forget(running.uid)

    def room(self, kind: str) -> int:
        """How many more of this kind can be placed; none of them stays."""
        more: list[Running] = []
        while (running := self.start(kind)) is not None:
            more.append(running)
        for running in more:
            self.end(running)
        return len(more)

    def cards(self) -> tuple[CardUse, ...]:
        """All cards, machine by machine."""
        self._world.nodes = self._nodes
        return card_uses(self._world)

    def empty_machines(self) -> int:
        """How many machines nobody has anything of."""
        used = {card.node for card in self.cards() if card.exclusive or card.shares}
        return len(self._nodes) - len(used)

    def _forget(self, uid: str) -> None:
        self._world.planner.withdraw(uid)
        self._world.cluster.remove_pod(uid)
        self._world.bound.drop(uid)

    def _ranked(self, raw: Raw) -> tuple[NodeName, ...]:
        """The nodes as kube-scheduler ranks them for this pod; where it draws, their order."""
        wants = footprint(decode.convert(Pod, raw))
        names = map(NodeName, self._nodes)
        return tuple(sorted(names, key=lambda node: self._order(node, wants)))

    def _order(self, node: NodeName, wants: Footprint) -> tuple[float, ...]:
        allocatable = self._world.cluster.node(node).status.allocatable
        has = allocatable["cpu"].nano // _MILLI, allocatable["memory"].nano // _MIB
        others = [_of(one) for one in self._world.bound.on(node)]
        left = [total - sum(one[at] for one in others) for at, total in enumerate(has)]
        machine = Machine(cpu=has[0], memory=has[1], cards=0, model="")
        ask = Ask(*_of(wants), cards=0, milli=0, models=frozenset())
        option = StockPlacer().option(State(machine, left[0], left[1], ()), ask)
        return option.order if option is not None else (0.0,)


def _of(one: Footprint) -> tuple[int, int]:
    """CPU in thousandths and memory in MiB."""
    return one.resources.get("cpu", 0) // _MILLI, one.resources.get("memory", 0) // _MIB
