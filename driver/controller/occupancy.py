"""Which pods are on a node, or meant for it, and what they take of it apart from devices.

Only pods that the controller watches are known: those of ours, or all where it is set up so.
"""

from collections.abc import Callable, Iterable

import msgspec

from driver.controller.footprint import Footprint


class _Place(msgspec.Struct, frozen=True):
    node: str
    footprint: Footprint


class Occupancy:
    """At most one node for each pod, by UID. `touched` is told of nodes that change."""

    def __init__(self, touched: Callable[[str], None]) -> None:
        self._touched = touched
        self._places: dict[str, _Place] = {}
        self._on: dict[str, dict[str, Footprint]] = {}

    def put(self, pod: str, node: str, footprint: Footprint) -> None:
        """The pod is on this node, or meant for it, and nowhere else."""
        place = _Place(node, footprint)
        if self._places.get(pod) == place:
            return
        self.drop(pod)
        self._places[pod] = place
        self._on.setdefault(node, {})[pod] = footprint
        self._touched(node)

    def drop(self, pod: str) -> None:
        """The pod is nowhere."""
        place = self._places.pop(pod, None)
        if place is None:
            return
        on = self._on[place.node]
        del on[pod]
        if not on:
            del self._on[place.node]
        self._touched(place.node)

    def on(self, node: str) -> Iterable[Footprint]:
        """What the pods of this node take."""
        return self._on.get(node, {}).values()

    def node_of(self, pod: str) -> str | None:
        """Where the pod is, or is meant to be."""
        place = self._places.get(pod)
        return place.node if place is not None else None
