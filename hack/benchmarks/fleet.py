"""What stands in the clusters that are measured: nodes of eight cards, as the node plugin tells it.

Pure but for the packaged files. The same size and seed always give the same objects.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from driver.node import slices
from driver.node.device import device
from driver.node.simulated import cards

Json = dict[str, Any]
DRIVER = "gpu.quadrant.dev"
CLASS = "gpu.quadrant.dev"
CARDS = 8
MODEL = "H100-SXM"
NAMESPACE = "bench"
# How many shares fit on a card, and what each of them asks for.
SHARES_A_CARD = 4
SHARE = {"memory": "16Gi", "cores": "25"}
_CLASSES = Path(__file__).resolve().parents[2] / "deviceclasses"


class Place(msgspec.Struct, frozen=True, order=True):
    """Where one claim fits: a whole card, or one share of it."""

    node: str
    card: int
    share: int = 0


class Fleet(msgspec.Struct, frozen=True):
    """So many equal nodes, whose cards are given away whole or in shares."""

    nodes: int
    shared: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """All nodes."""
        return tuple(f"n{index:05}" for index in range(self.nodes))

    def places(self) -> list[Place]:
        """Everything that can be given away."""
        shares = SHARES_A_CARD if self.shared else 1
        return [
            Place(node, card, share)
            for node in self.names
            for card in range(CARDS)
            for share in range(shares)
        ]

    def taken(self, level: float, seed: int) -> list[Place]:
        """The places that are in use in a cluster that is full to this level (0 to 1)."""
        places = self.places()
        chance = random.Random(seed)  # noqa: S311 # a seed must give the same cluster again
        return sorted(chance.sample(places, round(level * len(places))))

    def slices(self) -> Iterator[Json]:
        """What the node plugins publish."""
        for name in self.names:
            devices = [device(card, shareable=self.shared) for card in cards(_SPEC, name)]
            pool = slices.pool(devices, driver=DRIVER, node=name)
            for action in slices.plan(pool, (), stored={}):
                if isinstance(action, slices.Create):
                    yield action.body

    def claim(self, name: str, version: int) -> Json:
        """A claim that nobody has answered yet."""
        exactly: Json = {"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": 1}
        if self.shared:
            exactly["capacity"] = {"requests": SHARE}
        metadata = {
            "name": name,
            "namespace": NAMESPACE,
            "uid": f"uid-{name}",
            "resourceVersion": str(version),
        }
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": metadata,
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
        }

    def allocated(self, claim: Json, place: Place) -> Json:
        """The claim with this place, as the scheduler writes it."""
        result: Json = {
            "request": "gpu",
            "driver": DRIVER,
            "pool": place.node,
            "device": f"gpu-{place.card}",
        }
        if self.shared:
            result["shareID"] = f"share-{claim['metadata']['uid']}"
            result["consumedCapacity"] = dict(SHARE)
        field = {"key": "metadata.name", "operator": "In", "values": [place.node]}
        allocation = {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        }
        return claim | {"status": {"allocation": allocation}}


_SPEC = f"{CARDS}x{MODEL}"


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
    file = "gpu-extended-resource.yaml" if extended else "gpu.yaml"
    found: Json = yaml.safe_load((_CLASSES / file).read_text())
    return found
