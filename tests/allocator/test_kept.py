"""What is kept beside devices and pools must never outlive what it was worked out from."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from driver.allocator.allocate import allocate
from driver.allocator.problem import Problem
from driver.model.allocation import DeviceUse
from driver.model.errors import AllocationError
from driver.model.ids import DeviceId
from driver.policy.registry import objective
from tests.allocator.worlds import World, worlds


def _said(problem: Problem, policy: str) -> object:
    """All that comes out, an error as its text."""
    try:
        return allocate(problem, objective=objective(policy))
    except AllocationError as error:
        return str(error)


@given(worlds(), st.data(), st.sampled_from(["compact", "spread", "topology"]))
def test_another_use_is_another_decision(world: World, data: st.DataObject, policy: str) -> None:
    """The same pools, asked again and again while use comes and goes, say what new ones say."""
    kept = world.problem()
    devices = [device.id for pool in kept.pools for device in pool.devices]
    for _ in range(3):
        freed = data.draw(st.sets(st.sampled_from(devices)))
        taken = data.draw(st.sets(st.sampled_from(devices), max_size=2))
        use: dict[DeviceId, DeviceUse] = {
            **{name: one for name, one in world.use.items() if name not in freed},
            **{name: DeviceUse(exclusive=True) for name in taken},
        }
        fresh = replace(world.problem(), usage=use)
        assert _said(replace(kept, usage=use), policy) == _said(fresh, policy)
