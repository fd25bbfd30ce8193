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

# What fits should be found; what is best need not be perfect, and a commit waits for it. A step is
# a few microseconds.
FIRST_FIT_STEPS = 50_000
BEST_FIT_STEPS = 5_000


class InvalidPoolsError(AllocationError):
    """The claims do not fit, and pools that might have served them are broken: on this node."""


def allocate(
    problem: Problem,
    *,
    objective: Objective | None = None,
    max_steps: int | None = None,
) -> Allocated | Unsatisfiable:
    """Choose devices for all claims together, or say that they do not fit on the node.

    Without an objective the choice is the scheduler's, exactly; with one it is the best-scoring
    set that the same rules allow, with the alternatives that the scheduler would take. `max_steps`
    bounds how many devices each of the two searches tries. Raises `AllocationError` where
    Kubernetes' allocator would stop with an error, and `TooDearError` where selectors take so long
    that nothing can be said.
    """
    plan = Plan(problem, Book(problem))
    board = Board(plan)
    first = FirstFit(plan, board, max_steps=FIRST_FIT_STEPS if max_steps is None else max_steps)
    solution = first.run()
    if solution is None:
        return _unsatisfiable(plan, first)
    if objective is None:
        return Allocated(allocations=allocations(plan, solution), steps=first.steps)
    bound = BEST_FIT_STEPS if max_steps is None else max_steps
    best = BestFit(plan, board, objective, max_steps=bound)
    solution = best.run(solution)
    return Allocated(
        allocations=allocations(plan, solution),
        explanation=best.explanation(rejections(plan)),
        steps=first.steps + best.steps,
        truncated=best.truncated,
    )


def _unsatisfiable(plan: Plan, first: FirstFit) -> Unsatisfiable:
    broken = [pool for pool in plan.problem.pools if pool.invalid is not None]
    if broken:
        raise InvalidPoolsError(
            f"invalid resource pools were encountered: {broken[0].id}: {broken[0].invalid}; "
            "the driver that publishes it must be mended"
        )
    return Unsatisfiable(
        rejections=rejections(plan, failed=True), steps=first.steps, truncated=first.truncated
    )
