"""The scheduler's own choice: the first set of devices that serves all requests.

Source of the order: Kubernetes' allocator. Claims, requests, alternatives and devices in the order
they stand, with full backtracking; within a request only ascending combinations.
"""

from driver.allocator.demand import Candidate, Demand
from driver.allocator.placement import Board
from driver.allocator.plan import MAX_RESULTS, Plan


class FirstFit:
    """One run. `steps` counts the devices that were tried."""

    def __init__(self, plan: Plan, board: Board, *, max_steps: int) -> None:
        self._plan = plan
        self._board = board
        self._max_steps = max_steps
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
        return any(
            0 < demand.count <= room and self._devices(index, demand, demand.count, 0)
            for demand in step.alternatives
        )

    def _devices(self, index: int, demand: Demand, left: int, start: int) -> bool:
        if not left:
            return self._request(index + 1)
        # Mode All takes every candidate, so the next one must do.
        end = start + 1 if demand.takes_all else len(demand.candidates)
        for position in range(start, end):
            if self._stop():
                return False
            if not self._board.place(demand.candidates[position]):
                continue
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
