"""What is kept beside devices and pools must never outlive what it was worked out from."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from driver.allocator.allocate import allocate
from driver.allocator.outcome import node_view
from driver.allocator.problem import Problem
from driver.model.allocation import DeviceUse
from driver.model.errors import AllocationError
from driver.model.ids import DeviceId
from driver.model.names import DRIVER
from driver.policy.registry import objective
from tests.allocator.build import (
    ADevice,
    chosen,
    claim,
    device,
    gpus,
    in_use,
    problem,
    request,
    slice_of,
)
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


def _places(policy: str, *devices: ADevice, held: tuple[str, ...] = ()) -> tuple[list[str], int]:
    """Which card is chosen, and in how many steps."""
    asked = problem([slice_of(*devices)], claim(), use=in_use(*held))
    outcome = allocate(asked, objective=objective(policy))
    return chosen(outcome), outcome.steps


def test_another_group_is_another_card() -> None:
    """The last free card of a group goes before one of a whole group."""
    cards = [device(f"gpu-{n}").with_links(group="ab"[n // 2]) for n in range(4)]
    assert _places("compact", *cards, held=("gpu-3",))[0] == ["gpu-2"]


def test_another_root_is_another_card() -> None:
    """An idle root goes before one that is in use, where first fit would stay."""
    cards = [device(f"gpu-{n}").with_links(root=f"pci{n // 2}") for n in range(4)]
    assert _places("spread", *cards, held=("gpu-1",))[0] == ["gpu-2"]


def test_another_switch_is_another_card() -> None:
    """A pair on one switch goes before first fit's two that only share the root."""
    switches = ("s0", "s1", "s2", "s2")
    cards = [device(f"gpu-{n}").with_links(switch=s, root="pci0") for n, s in enumerate(switches)]
    asked = problem([slice_of(*cards)], claim(request("gpu", count=2)))
    assert chosen(allocate(asked, objective=objective("topology"))) == ["gpu-2", "gpu-3"]


def test_a_place_of_its_own_makes_no_card_another_one() -> None:
    """What no other card shares has a name that says nothing: one is tried beside first fit's."""
    cards = [
        device(f"gpu-{n}").with_links(group=f"g{n}", switch=f"s{n}", root=f"pci{n}")
        for n in range(16)
    ]
    assert _places("compact", *cards) == (["gpu-0"], 2)


def test_a_device_has_the_place_that_it_is_asked_for() -> None:
    """Which devices count in scores is the question's affair: places follow."""
    slices = [slice_of(device("far"), driver="a.example"), slice_of(*gpus(2), name="own")]
    both = problem(slices, claim())
    for asked in (both, replace(both, driver=DRIVER), both):
        views = node_view(asked).devices
        assert [view.index for view in views] == [*range(len(views))]
        assert len(views) == (2 if asked.driver else 3)
