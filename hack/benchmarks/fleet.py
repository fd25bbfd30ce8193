"""What stands in the clusters that are measured: nodes of eight cards, as the node plugin tells it.

Pure but for the packaged files. The same size and seed always give the same objects.
"""

import random
import uuid
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import msgspec
import yaml

from driver.model.names import DRIVER
from driver.node import slices
from driver.node.card import Card
from driver.node.device import attributes, device
from driver.node.simulated import cards
from hack.benchmarks.workloads import WHOLE, Json, Workload

CARDS = 8
# The models of a node, in the order of its slots: one kind of node after the other.
MACHINES = (
    ("H100-SXM",) * CARDS,
    ("A100-SXM4-80GB",) * CARDS,
    ("L40S",) * CARDS,
    ("L40S",) * 4 + ("H200",) * 4,
)
Machine = tuple[str, ...]
# Of fewer nodes, some workload has no room left in a cluster that is 95 % full.
FEWEST = 2 * len(MACHINES)
_REPOSITORY = Path(__file__).resolve().parents[2]


class Place(msgspec.Struct, frozen=True, order=True):
    """Where one claim fits. `other`: not one of the fleet's workload, but one for a whole card."""

    node: str
    cards: tuple[int, ...]
    share: int = 0
    other: bool = False


class Fleet(msgspec.Struct, frozen=True):
    """So many nodes of a few kinds, in use by claims of one workload.

    Cards that the workload cannot have are given away whole, so that they are as full as the rest.
    """

    nodes: int
    workload: Workload = WHOLE

    @property
    def names(self) -> tuple[str, ...]:
        """All nodes."""
        return tuple(f"n{index:05}" for index in range(self.nodes))

    def spots(self, node: str) -> tuple[tuple[int, ...], ...]:
        """The sets of cards of a node that a claim can have, in the scheduler's order."""
        return _spots(_machine(node), self.workload)

    def places(self) -> list[Place]:
        """Everything that can be given away."""
        return [
            Place(node, spot, share)
            for node in self.names
            for spot in self.spots(node)
            for share in range(self.workload.shares)
        ]

    def others(self) -> list[Place]:
        """The cards that no claim of the workload can have."""
        return [
            Place(node, (card,), other=True)
            for node in self.names
            for card in sorted({*range(CARDS)}.difference(*self.spots(node)))
        ]

    def taken(self, level: float, seed: int) -> list[Place]:
        """The places that are in use in a cluster that is full to this level (0 to 1)."""
        chance = random.Random(seed)  # noqa: S311 # a seed must give the same cluster again
        return sorted(
            place
            for places in (self.places(), self.others())
            for place in chance.sample(places, round(level * len(places)))
        )

    def holder(self, place: Place, number: int) -> Json:
        """The claim, one of many, that has this place."""
        workload = WHOLE if place.other else self.workload
        return workload.allocated(workload.claim(f"c{number}", number), place.node, place.cards)

    def slices(self) -> Iterator[Json]:
        """What the node plugins publish."""
        for name in self.names:
            devices = [device(card, shareable=self.workload.shares > 1) for card in _cards(name)]
            pool = slices.pool(devices, driver=DRIVER, node=name)
            for action in slices.plan(pool, (), stored={}):
                if isinstance(action, slices.Create):
                    yield action.body


def _machine(node: str) -> Machine:
    return MACHINES[int(node[1:]) % len(MACHINES)]


def _cards(node: str) -> Iterable[Card]:
    for card in _built(_machine(node)):
        name = uuid.uuid5(uuid.NAMESPACE_OID, f"{node}/{card.index}")
        yield msgspec.structs.replace(card, uuid=f"GPU-{name}")


@cache
def _built(machine: Machine) -> tuple[Card, ...]:
    """The cards of such a machine; reading a profile takes a while."""
    return tuple(cards(f"{CARDS}x{model}", "any")[slot] for slot, model in enumerate(machine))


@cache
def _spots(machine: Machine, workload: Workload) -> tuple[tuple[int, ...], ...]:
    alike: dict[object, list[int]] = {}
    for model, card in zip(machine, _built(machine), strict=True):
        if not workload.suits or model in workload.suits:
            # Without a match every card is like itself only.
            value = attributes(card)[workload.match] if workload.match else card.index
            alike.setdefault(repr(value), []).append(card.index)
    return tuple(tuple(cards) for cards in alike.values() if len(cards) == workload.count)


def node(name: str) -> Json:
    """A node with room for many pods; nothing runs on it."""
    amounts = {"cpu": "256", "memory": "2048Gi", "pods": "1000"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def device_class(*, extended: bool = False) -> Json:
    """The class of the repository; `extended`: the one that answers for nvidia.com/gpu."""
    file = "examples/extended-resource/deviceclass.yaml" if extended else "deviceclasses/gpu.yaml"
    found: Json = yaml.safe_load((_REPOSITORY / file).read_text())
    return found
