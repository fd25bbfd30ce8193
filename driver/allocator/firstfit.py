"""The scheduler's own choice: the first set of devices that serves all requests.

Source of the order: Kubernetes' allocator. Claims, requests, alternatives and devices in the order
they stand, with full backtracking; within a request only ascending combinations. Unlike there, two
equal requests in a row are not tried the other way round: the first solution never needs it, and
without it a claim that does not fit is found out in steps that can be counted.
"""

from driver.allocator.demand import Candidate, Demand
from driver.allocator.placement import Board
from driver.allocator.plan import MAX_RESULTS, Plan, Step
from driver.allocator.symmetry import twins


class FirstFit:
    """One run. `steps` counts the devices that were tried."""

    def __init__(self, plan: Plan, board: Board, *, max_steps: int) -> None:
        self._plan = plan
        self._board = board
        self._max_steps = max_steps
        self._twins = [False, *map(self._are_twins, plan.steps, plan.steps[1:])]
        # Where in its candidates the first device of each request stands.
        self._first = [0] * len(plan.steps)
        self.steps = 0
        self.truncated = False

    def run(self) -> tuple[Candidate, ...] | None:
        """The first solution, in the order of the requests; None if there is none.

        The board is left as it was. With `truncated` set, none was found within `max_steps`.
        """
        if not self._request(0):
            return None
        placed = tuple(self._board.placed)
        for _ in placed:
            self._board.take_back()
        return placed

    def _request(self, index: int) -> bool:
        if index == len(self._plan.steps):
            return True
        step = self._plan.steps[index]
        room = MAX_RESULTS - self._board.results_of(step.claim) - step.least_after
        start = self._first[index - 1] if self._twins[index] else 0
        return any(
            0 < demand.count <= room and self._devices(index, demand, demand.count, start)
            for demand in step.alternatives
        )

    def _devices(self, index: int, demand: Demand, left: int, start: int) -> bool:
        if not left:
            return self._request(index + 1)
        # Mode All takes every candidate, so the next one must do.
        candidates = self._plan.candidates[demand]
        end = start + 1 if demand.takes_all else len(candidates)
        for position in range(start, end):
            if self._stop():
                return False
            if not self._board.place(candidates[position]):
                continue
            if left == demand.count:
                self._first[index] = position
            if self._devices(index, demand, left - 1, position + 1):
                return True
            self._board.take_back()
        return False

    def _stop(self) -> bool:
        if self.steps >= self._max_steps:
            self.truncated = True
            return True
        self.steps += 1
        return False

    def _are_twins(self, one: Step, other: Step) -> bool:
        """Whether two requests ask for the same, and no selector can fail on the way."""
        if len(one.alternatives) != 1 or len(other.alternatives) != 1:
            return False
        first, second = one.alternatives[0], other.alternatives[0]
        candidates = self._plan.candidates[first]
        return twins(first, second) and all(each.failure is None for each in candidates)
