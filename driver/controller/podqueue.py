"""Which pod is decided next: the highest priority first, then the oldest, then by UID.

It is the order in which the scheduler takes them. Knows nothing of what is decided.
"""

import heapq
from typing import NamedTuple

from driver.model.core import Pod

# So many places of pods that wait no more are not worth clearing up.
_SPARE = 64


class Turn(NamedTuple):
    """A pod's place in the order; the least goes first."""

    priority: int
    created: str
    uid: str


def turn(pod: Pod) -> Turn:
    """When it is this pod's turn."""
    created = pod.metadata.creation_timestamp or ""
    return Turn(-pod.spec.priority, created, pod.metadata.uid)


class PodQueue:
    """Pods that wait for a decision, each at most once."""

    def __init__(self) -> None:
        self._heap: list[Turn] = []
        self._waiting: set[str] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, pod: Pod) -> None:
        """The pod waits; it keeps its place if it does already."""
        uid = pod.metadata.uid
        if uid in self._waiting:
            return
        if len(self._heap) > 2 * len(self._waiting) + _SPARE:
            # A replica that does not lead takes nobody out: those that were dropped would stay.
            self._heap = [place for place in self._heap if place.uid in self._waiting]
            heapq.heapify(self._heap)
        self._waiting.add(uid)
        heapq.heappush(self._heap, turn(pod))

    def drop(self, uid: str) -> None:
        """The pod does not wait any more."""
        self._waiting.discard(uid)

    def next(self) -> str | None:
        """The UID of the pod whose turn it is, which waits no longer; None when none waits."""
        while self._heap:
            uid = heapq.heappop(self._heap).uid
            if uid in self._waiting:
                self._waiting.discard(uid)
                return uid
        return None
