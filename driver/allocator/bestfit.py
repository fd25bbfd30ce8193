"""The best choice: the highest-scoring set of devices that the scheduler's rules allow.

The alternatives of prioritised requests are those that first fit takes: which one is served is the
user's order, not a matter of score. First fit's set is the one to beat, and ties go to the set
that first fit would meet first; so the result is never worse, and always the same. Devices that
nothing tells apart are tried once.
"""

from collections.abc import Hashable, Iterable

from driver.allocator.capacity import NOTHING
from driver.allocator.demand import Candidate, Demand, Obstacle
from driver.allocator.outcome import node_view, scored
from driver.allocator.placement import Board
from driver.allocator.plan import Plan
from driver.allocator.symmetry import kinds, twins
from driver.model.allocation import Explanation, Rejection, RunnerUp, Score
from driver.model.errors import AllocationError
from driver.policy.registry import Objective
from driver.policy.view import Choice, Taken

Solution = tuple[Candidate, ...]
_Entry = tuple[tuple[float, ...], Score, Solution]

MAX_RUNNERS_UP = 3


class BestFit:
    """One run over the choices for a plan. `steps` counts the devices that were tried."""

    def __init__(self, plan: Plan, board: Board, objective: Objective, *, max_steps: int) -> None:
        self._plan = plan
        self._board = board
        self._objective = objective
        self._max_steps = max_steps
        self._scored = scored(plan.problem)
        self._view = node_view(plan.problem)
        self._given = tuple(self._given_devices())
        self._taken: dict[Candidate, Taken | None] = {}
        # What is taken of a device is one object however many requests may take it, so that the
        # same devices shared out otherwise among the requests are known to be the same choice.
        self._same: dict[Hashable, Taken] = {}
        self._seen: set[tuple[int, ...]] = set()
        self._demands: list[Demand] = []
        self._candidates: list[list[Candidate]] = []
        self._twins: list[bool] = []
        # Where in its candidates each demand's first device stands.
        self._first: list[int] = []
        self._kinds: dict[Candidate, Hashable] = {}
        self._ranking: list[_Entry] = []
        self.steps = 0
        self.truncated = False

    def run(self, first: Solution) -> Solution:
        """The best solution, starting from first fit's; the board is left as it was."""
        self._demands = list(dict.fromkeys(candidate.demand for candidate in first))
        self._candidates = [self._usable(demand) for demand in self._demands]
        self._twins = [False, *map(twins, self._demands, self._demands[1:])]
        self._first = [0] * len(self._demands)
        self._kinds = kinds(self._candidates, self._plan.rules, self._scored)
        self._consider(first)
        self._demand(0)
        return self._ranking[0][2]

    def explanation(self, rejected: tuple[Rejection, ...]) -> Explanation:
        """Why the best is the best."""
        return Explanation(
            policy=self._objective.name,
            score=self._ranking[0][1],
            runners_up=tuple(
                RunnerUp(tuple(one.standing.device.id for one in solution), score)
                for _, score, solution in self._ranking[1:]
            ),
            rejections=rejected,
            stopped_after=self.steps if self.truncated else 0,
        )

    def _usable(self, demand: Demand) -> list[Candidate]:
        """The candidates that nothing alone keeps from the demand."""
        candidates = self._plan.candidates[demand]
        if demand.takes_all:
            return list(candidates)
        rules, book = self._plan.rules, self._plan.book
        return [one for one in candidates if one.obstacle(rules, book) is None and _has_values(one)]

    def _place(self, candidate: Candidate) -> bool:
        """Put it on the board; what Kubernetes would stop at is no choice, for there is another."""
        try:
            return self._board.place(candidate)
        except AllocationError:
            return False

    def _demand(self, index: int) -> None:
        if index == len(self._demands):
            self._consider(tuple(self._board.placed))
            return
        demand = self._demands[index]
        # Of two equal requests the first has the earlier device: the other way round is the same.
        start = self._first[index - 1] if self._twins[index] else 0
        self._devices(index, demand.count, start)

    def _devices(self, index: int, left: int, start: int) -> None:
        if not left:
            self._demand(index + 1)
            return
        demand, candidates = self._demands[index], self._candidates[index]
        end = start + 1 if demand.takes_all else len(candidates) - left + 1
        sole = left == 1 and self._is_sole(demand)
        tried: set[Hashable] = set()
        for position in range(start, end):
            candidate = candidates[position]
            kind = self._kinds[candidate]
            if not candidate.standing.touched:
                if kind in tried:
                    continue
                tried.add(kind)
            if self._stop():
                return
            if sole:
                self._consider((candidate,))
                continue
            if not self._place(candidate):
                continue
            if left == demand.count:
                self._first[index] = position
            self._devices(index, left - 1, position + 1)
            self._board.take_back()

    def _is_sole(self, demand: Demand) -> bool:
        """Whether one device is all that is chosen: then each that is usable may be placed."""
        single = len(self._demands) == 1 and not self._board.placed
        return single and not demand.constraints and not demand.takes_all

    def _stop(self) -> bool:
        if self.steps >= self._max_steps:
            self.truncated = True
            return True
        self.steps += 1
        return False

    def _consider(self, solution: Solution) -> None:
        taken = (*self._given, *self._takes(solution))
        known = tuple(sorted(map(id, taken)))
        if known in self._seen:
            return
        self._seen.add(known)
        rank, score = self._objective.judge(self._view, Choice(taken))
        ranking = self._ranking
        place = len(ranking)
        while place and ranking[place - 1][0] < rank:
            place -= 1
        if place <= MAX_RUNNERS_UP:
            ranking.insert(place, (rank, score, solution))
            del ranking[MAX_RUNNERS_UP + 1 :]

    def _takes(self, solution: Solution) -> Iterable[Taken]:
        for candidate in solution:
            if candidate not in self._taken:
                self._taken[candidate] = self._take(candidate)
            taken = self._taken[candidate]
            if taken is not None:
                yield taken

    def _take(self, candidate: Candidate) -> Taken | None:
        device = candidate.standing.device
        index = self._scored.index.get(device)
        if index is None or candidate.demand.admin:
            return None
        portion = candidate.portion(self._plan.rules)
        if not device.shareable or isinstance(portion, Obstacle):
            portion = NOTHING
        key = (index, portion.key)
        taken = Taken(index, portion.nanos, exclusive=not device.shareable)
        return self._same.setdefault(key, taken)

    def _given_devices(self) -> Iterable[Taken]:
        """What the problem fixes counts in the score too, as a part of the same claims."""
        for demand in self._plan.fixed:
            for result in self._plan.problem.fixed[demand.claim, demand.name]:
                standing = self._plan.book.find(result.device_id())
                index = None if standing is None else self._scored.index.get(standing.device)
                if index is not None and not result.admin_access:
                    consumed = {name: one.nano for name, one in result.consumed_capacity.items()}
                    yield Taken(index, consumed, exclusive=result.share_id is None)


def _has_values(candidate: Candidate) -> bool:
    """Whether the constraints can be asked about the device at all."""
    try:
        candidate.values()
    except AllocationError:
        return False
    return True
