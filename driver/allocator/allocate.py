"""The one way into the allocator: which devices of a node these claims get.

Deterministic: the same problem gives the same answer, whatever order its slices came in.
"""

from driver.allocator.bestfit import BestFit
from driver.allocator.explain import rejections
from driver.allocator.firstfit import FirstFit
from driver.allocator.outcome import Allocated, Unsatisfiable
from driver.allocator.placement import Board
from driver.allocator.plan import Plan
from driver.allocator.problem import Problem
from driver.allocator.results import allocations
from driver.allocator.standing import Book
from driver.model.errors import AllocationError
from driver.policy.registry import Objective

DEFAULT_MAX_STEPS = 20_000


class InvalidPoolsError(AllocationError):
    """The claims do not fit, and pools that might have served them are broken: on this node."""


def allocate(
    problem: Problem,
    *,
    objective: Objective | None = None,
    max_steps: int = DEFAULT_MAX_STEPS,
) -> Allocated | Unsatisfiable:
    """Choose devices for all claims together, or say that they do not fit on the node.

    Without an objective the choice is the scheduler's, exactly; with one it is the best-scoring
    set that the same rules allow, with the alternatives that the scheduler would take. `max_steps`
    bounds how many devices are tried. Raises `AllocationError` where Kubernetes' allocator would
    stop with an error.
    """
    book = Book(problem)
    plan = Plan(problem, book)
    board = Board(plan)
    first = FirstFit(plan, board, max_steps=max_steps)
    solution = first.run()
    if solution is None:
        broken = [pool for pool in problem.pools if pool.invalid is not None]
        if broken:
            raise InvalidPoolsError(
                f"invalid resource pools were encountered: {broken[0].id}: {broken[0].invalid}; "
                "the driver that publishes it must be mended"
            )
        return Unsatisfiable(
            rejections=rejections(plan, failed=True), steps=first.steps, truncated=first.truncated
        )
    if objective is None:
        return Allocated(allocations=allocations(plan, solution), steps=first.steps)
    best = BestFit(plan, board, objective, max_steps=max_steps)
    solution = best.run(solution)
    return Allocated(
        allocations=allocations(plan, solution),
        explanation=best.explanation(rejections(plan)),
        steps=first.steps + best.steps,
        truncated=best.truncated,
    )
