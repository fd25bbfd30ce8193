"""What must hold in every world, checked against an exhaustive reference."""

from itertools import islice

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from driver.allocator.allocate import allocate
from driver.allocator.device import PooledDevice
from driver.allocator.outcome import Allocated, Unsatisfiable, choice, node_view
from driver.allocator.problem import Problem
from driver.model.ids import DeviceId
from driver.model.names import MEMORY
from driver.model.quantity import whole
from driver.model.resourceclaim import AllocationResult
from driver.policy.registry import objective
from driver.policy.view import Choice, Taken
from tests.allocator.build import device, slice_of
from tests.allocator.reference import Pick, solutions, valid
from tests.allocator.worlds import COUNTER, World, amounts, options, worlds

# The reference goes through all choices; worlds with more are left to the other tests.
MOST_CHOICES = 4000
POLICIES = (
    "compact",
    "spread",
    "topology",
    "fragmentation",
    "hami",
    "hami-spread",
    "compact,topology",
)


def _devices(outcome: Allocated) -> list[DeviceId]:
    return [
        result.device_id()
        for allocation in outcome.allocations
        for result in allocation.devices.results
    ]


def _requests(picks: tuple[Pick, ...]) -> list[tuple[int, str]]:
    return [(claim, name) for claim, name, _, _ in picks]


def _choice(problem: Problem, picks: tuple[Pick, ...]) -> Choice:
    order = [device for pool in problem.pools for device in pool.devices]
    taken = [
        Taken(order.index(device), amounts(asked, device), exclusive=False)
        if device.shareable
        else Taken(order.index(device))
        for _, _, asked, devices in picks
        for device in devices
    ]
    return Choice(tuple(taken))


def _picks(problem: Problem, allocations: tuple[AllocationResult, ...]) -> tuple[Pick, ...]:
    """The allocations in the form that the reference checks."""
    by_id = {device.id: device for pool in problem.pools for device in pool.devices}
    picks: list[Pick] = []
    for index, (claim, allocation) in enumerate(zip(problem.claims, allocations, strict=True)):
        for request in claim.spec.devices.requests:
            for name, asked in options(request):
                got: tuple[PooledDevice, ...] = tuple(
                    by_id[one.device_id()]
                    for one in allocation.devices.results
                    if one.request == name
                )
                picks += [(index, name, asked, got)] if got else []
    return tuple(picks)


@given(worlds())
@settings(deadline=None, max_examples=80)
def test_first_fit_is_the_first_solution_of_the_reference(world: World) -> None:
    """The same feasibility, and the very same devices."""
    problem = world.problem()
    expected = next(solutions(problem), None)
    outcome = allocate(problem)
    if expected is None:
        assert isinstance(outcome, Unsatisfiable)
        return
    assert isinstance(outcome, Allocated)
    assert _devices(outcome) == [device.id for _, _, _, got in expected for device in got]


@given(worlds(), st.sampled_from(POLICIES))
@settings(deadline=None, max_examples=60)
def test_no_solution_of_the_reference_scores_more(world: World, policy: str) -> None:
    """The best score is reached, with the alternatives that first fit takes."""
    problem, scoring = world.problem(), objective(policy)
    assert scoring is not None
    found = list(islice(solutions(problem), MOST_CHOICES))
    outcome = allocate(problem, objective=scoring)
    if not found or len(found) == MOST_CHOICES:
        return
    assert isinstance(outcome, Allocated)
    assert not outcome.truncated
    picks = _picks(problem, outcome.allocations)
    assert _requests(picks) == _requests(found[0])
    assert valid(problem, picks)
    view = node_view(problem)
    best = max(
        scoring.rank(view, _choice(problem, one))
        for one in found
        if _requests(one) == _requests(found[0])
    )
    assert scoring.rank(view, choice(problem, outcome.allocations)) == best
    assert outcome.explanation.score == scoring.score(view, choice(problem, outcome.allocations))


@given(worlds(), st.sampled_from([None, *POLICIES]))
@settings(deadline=None, max_examples=80)
def test_nothing_is_given_twice_or_overdrawn(world: World, policy: str | None) -> None:
    """No whole device twice, no capacity or counter below zero: added up from the results alone."""
    problem = world.problem()
    outcome = allocate(problem, objective=None if policy is None else objective(policy))
    if isinstance(outcome, Unsatisfiable):
        return
    devices = {one.id: one for pool in problem.pools for one in pool.devices}
    given = [one for made in outcome.allocations for one in made.devices.results]
    alone = [one.device_id() for one in given if one.share_id is None]
    assert len(alone) == len({*alone})
    assert not {*alone} & {*problem.usage}
    for name, published in devices.items():
        for capacity, size in published.capacity.items():
            shares = [one for one in given if one.device_id() == name and one.share_id is not None]
            before = [problem.usage[name].consumed] if name in problem.usage else []
            taken = [*(one.consumed_capacity for one in shares), *before]
            assert sum(one[capacity].nano for one in taken if capacity in one) <= size
    drawing = {one.device_id() for one in given} | {*problem.usage}
    uses = [use for name in drawing for use in devices[name].device.consumes_counters]
    assert sum(use.counters["c"].value.nano for use in uses) <= whole(COUNTER).nano


@given(worlds(), st.sampled_from(POLICIES), st.integers(0, 30))
@settings(deadline=None, max_examples=60)
def test_a_bounded_search_is_never_worse_than_first_fit(
    world: World, policy: str, steps: int
) -> None:
    """Stopped anywhere, the answer is valid, and scores no less than the scheduler's."""
    problem, scoring = world.problem(), objective(policy)
    assert scoring is not None
    first = allocate(problem, max_steps=steps)
    outcome = allocate(problem, objective=scoring, max_steps=steps)
    assert isinstance(outcome, Allocated) == isinstance(first, Allocated)
    if isinstance(outcome, Unsatisfiable) or isinstance(first, Unsatisfiable):
        return
    view = node_view(problem)
    ranks = [scoring.rank(view, choice(problem, one.allocations)) for one in (outcome, first)]
    assert ranks[0] >= ranks[1]
    assert valid(problem, _picks(problem, outcome.allocations))


@given(worlds(), st.sampled_from(POLICIES), st.data())
@settings(deadline=None, max_examples=60)
def test_the_order_of_the_input_does_not_matter(
    world: World, policy: str, data: st.DataObject
) -> None:
    """Slices may come in any order."""
    scoring = objective(policy)
    shuffled = world.problem(data.draw(st.permutations(world.slices())))
    assert allocate(shuffled, objective=scoring) == allocate(world.problem(), objective=scoring)


@given(worlds(), st.sampled_from(POLICIES))
@settings(deadline=None, max_examples=60)
def test_one_more_free_device_never_hurts(world: World, policy: str) -> None:
    """What fits still fits when a device is added, or when one that is in use gets free."""
    scoring = objective(policy)
    if isinstance(allocate(world.problem(), objective=scoring), Unsatisfiable):
        return
    added = device("gpu-more").with_capacity(MEMORY, "1").with_attribute("productName", "big")
    extra = slice_of(added, pool="more", name="more")
    for slices in ([extra, *world.slices()], [*world.slices(), extra]):
        assert isinstance(allocate(world.problem(slices), objective=scoring), Allocated)
    for name in world.use:
        less = {one: use for one, use in world.use.items() if one != name}
        freed = replace(world, use=less).problem()
        assert isinstance(allocate(freed, objective=scoring), Allocated)


@given(worlds(), st.sampled_from(POLICIES), st.data())
@settings(deadline=None, max_examples=60)
def test_fixed_results_stay(world: World, policy: str, data: st.DataObject) -> None:
    """Fixing some results of a solution leaves them, and the rest is searched around them."""
    problem = world.problem()
    before = allocate(problem)
    if isinstance(before, Unsatisfiable):
        return
    results = [
        (index, result)
        for index, allocation in enumerate(before.allocations)
        for result in allocation.devices.results
    ]
    keys = data.draw(st.sets(st.sampled_from([(index, one.request) for index, one in results])))
    fixed = {
        key: tuple(one for index, one in results if (index, one.request) == key) for key in keys
    }
    outcome = allocate(replace(problem, fixed=fixed), objective=objective(policy))
    assert isinstance(outcome, Allocated)
    for (index, name), expected in fixed.items():
        kept = outcome.allocations[index].devices.results
        assert tuple(one for one in kept if one.request == name) == expected
    assert valid(problem, _picks(problem, outcome.allocations))


@given(worlds(), st.data())
@settings(deadline=None, max_examples=60)
def test_a_pinned_alternative_is_the_one_served(world: World, data: st.DataObject) -> None:
    """Other alternatives are not tried, even where they would fit."""
    problem = world.problem()
    alternatives = {
        (index, request.name): [one.name for one in request.first_available]
        for index, claim in enumerate(problem.claims)
        for request in claim.spec.devices.requests
        if request.first_available
    }
    pinned = {key: data.draw(st.sampled_from(names)) for key, names in alternatives.items()}
    outcome = allocate(replace(problem, pinned_subrequests=pinned), objective=objective("compact"))
    if isinstance(outcome, Allocated):
        for (index, name), chosen in pinned.items():
            results = outcome.allocations[index].devices.results
            served = {one.request for one in results if one.request.startswith(f"{name}/")}
            assert served == {f"{name}/{chosen}"}


@given(worlds(), st.data())
@settings(deadline=None, max_examples=60)
def test_excluded_devices_are_not_chosen(world: World, data: st.DataObject) -> None:
    """A device that may not be chosen is not, whatever the score."""
    problem = world.problem()
    names = [device.id for pool in problem.pools for device in pool.devices]
    excluded = frozenset(data.draw(st.sets(st.sampled_from(names))))
    outcome = allocate(replace(problem, excluded=excluded), objective=objective("compact"))
    if isinstance(outcome, Allocated):
        assert not excluded & set(_devices(outcome))
